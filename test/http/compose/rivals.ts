import type { App, Framework, Handler } from '../../helpers/frameworks.ts';
import type { RawClient } from '../../helpers/raw-client.ts';
import { type Gate, gate, Stage, type StageOptions } from '../../helpers/stage.ts';

/** A part of the first request's work: notes `first in`, and goes on when the test says so. */
export type Work = () => Promise<void>;

export interface RivalsOptions {
  /** What the first request sends. */
  readonly path?: string;
  readonly method?: string;
  readonly headers?: readonly string[];
  readonly body?: string;
  readonly locks?: StageOptions;
}

/**
 * Two requests for one key, `k`, on an application that a test puts together. `first` takes its way through the
 * middleware under test; once it is at work, `second` stands in the queue. It goes through the same application up to a
 * plain guarded route, notes `second in`, and answers.
 */
export class Rivals {
  readonly stage: Stage;
  readonly first: RawClient;
  readonly second: Promise<unknown>;
  readonly #go: Gate;

  private constructor(stage: Stage, first: RawClient, second: Promise<unknown>, go: Gate) {
    this.stage = stage;
    this.first = first;
    this.second = second;
    this.#go = go;
  }

  static async start(
    framework: Framework,
    build: (app: App, work: Work, stage: Stage) => unknown,
    { path = '/first', method = 'GET', headers = [], body = '', locks = {} }: RivalsOptions = {},
  ): Promise<Rivals> {
    const go = gate();
    const stage = await Stage.start(
      framework,
      (app, stage) => {
        const work = async (): Promise<void> => {
          stage.note('first in');
          await go;
        };
        const plain: Handler = (call) => {
          stage.note('second in');
          call.send('second');
        };
        build(app, work, stage);
        app.route('/second', framework.traceContext({ locks: stage.locks }), framework.lockOn('k'), plain);
      },
      locks,
    );
    const first = await stage.connect();
    const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
    first.request({ path, method, trace: 'first', headers: [...headers, ...length] }).socket.write(body);
    await stage.until('first in');
    const second = stage.get('/second', 'second');
    await stage.until('waiting second k');
    return new Rivals(stage, first, second, go);
  }

  /** Lets the first request's work go on. */
  go(): void {
    this.#go.open();
  }

  /** Shows that the first request holds the key, and the second one waits. */
  async expectHeld(): Promise<void> {
    expect(await this.stage.holder('k')).toBe('first');
    expect(await this.stage.waiters('k')).toEqual(['second']);
    expect(this.stage.journal).not.toContain('second in');
  }

  /** As `expectHeld`, after time for a round trip: whatever was about to happen on its own has happened. */
  async expectStillHeld(): Promise<void> {
    await this.stage.get('/nowhere', 'passer-by');
    await this.expectHeld();
  }

  /**
   * Shows that the second request got the key and was answered, and that the first one gave back each hold that the
   * store gave it, once.
   */
  async expectHandedOn(holds = 1): Promise<void> {
    await this.second;
    this.stage.expectOrder('first in', 'second in');
    await this.stage.free('k');
    expect([this.stage.count('granted first k'), this.stage.count('released first k')]).toEqual([holds, holds]);
  }

  /** Shows that the first request was answered, and that its connection, kept alive, has no listener of it any more. */
  async expectAnswer(pattern: RegExp): Promise<void> {
    await this.first.receives(pattern);
    await this.stage.unheard();
  }
}
