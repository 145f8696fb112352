import { gate } from '../gate.ts';
import { Pair } from '../stores/pair.ts';
import type { App, Framework, Handler } from './frameworks.ts';
import type { RawClient } from './raw-client.ts';
import { ServerStage, type ServerStageOptions } from './server-stage.ts';

/** A part of the first request's work: notes `first in`, and goes on when the test says so. */
export type Work = () => Promise<void>;

export interface RivalsOptions {
  /** What the first request sends. */
  readonly path?: string;
  readonly method?: string;
  readonly headers?: readonly string[];
  readonly body?: string;
  readonly locks?: ServerStageOptions;
}

/**
 * On an application that a test puts together: the first request takes its way through the middleware under test, and is
 * at work. The second one goes through the same application up to a plain guarded route.
 */
export class Rivals extends Pair<RawClient> {
  static async start(
    framework: Framework,
    build: (app: App, work: Work, stage: ServerStage) => unknown,
    { path = '/first', method = 'GET', headers = [], body = '', locks = {} }: RivalsOptions = {},
  ): Promise<Rivals> {
    const go = gate();
    const stage = await ServerStage.start(
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

  /**
   * Shows that the second request got the key and was answered, and that the first one gave back each hold that the
   * store gave it, once.
   */
  override async expectHandedOn(holds = 1): Promise<void> {
    await super.expectHandedOn();
    expect([this.stage.count('granted first k'), this.stage.count('released first k')]).toEqual([holds, holds]);
  }

  /** Shows that the first request was answered, and that its connection, kept alive, has no listener of it any more. */
  async expectAnswer(pattern: RegExp): Promise<void> {
    await this.first.receives(pattern);
    await this.stage.unheard();
  }
}
