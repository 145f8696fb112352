import type { ManualClock } from '../clock/manual-clock.ts';
import { type Gate, gate } from '../gate.ts';
import { type OptionsFirst, optionsOf } from '../options-first.ts';
import type { App, Call, Framework, GuardOptions } from './frameworks.ts';
import type { RawClient } from './raw-client.ts';
import { ServerStage, type ServerStageOptions } from './server-stage.ts';

export interface ContestOptions {
  /** Of the first request's guard. */
  readonly guard?: GuardOptions;
  readonly locks?: ServerStageOptions;
  readonly method?: string;
}

/** What the first request does when it may go on. */
export type FirstHandler = (call: Call, stage: ServerStage) => unknown;

/** A part of the first request's work: notes `first in`, and goes on when the test says so. */
export type Work = () => Promise<void>;

export interface ThroughOptions {
  /** What the first request sends. */
  readonly path?: string;
  readonly method?: string;
  readonly headers?: readonly string[];
  readonly body?: string;
  readonly locks?: ServerStageOptions;
}

/**
 * Two requests for one key, `k`: `first` has noted `first in` and goes on when the test says so, `second` stands in the
 * queue, notes `second in` when its handler runs, and answers.
 */
export class Contest<First = RawClient> {
  readonly stage: ServerStage;
  readonly first: First;
  readonly second: Promise<unknown>;
  readonly #go: Gate;

  private constructor(stage: ServerStage, first: First, second: Promise<unknown>, go: Gate) {
    this.stage = stage;
    this.first = first;
    this.second = second;
    this.#go = go;
  }

  /** On an application of their own. The first request is past its guard; `handler` runs when it may go on. */
  static start(framework: Framework, ...how: OptionsFirst<ContestOptions, FirstHandler>): Promise<Contest> {
    const [{ method = 'GET', ...options } = {}, handler] = optionsOf(how);
    const send = async (stage: ServerStage): Promise<RawClient> =>
      (await stage.connect()).request({ path: '/first', trace: 'first', method });
    return Contest.opened(framework, options, send, handler);
  }

  /** As `start`, with a first request, for `/first` and of the trace `first`, that the test sends. */
  static async opened<First>(
    framework: Framework,
    { guard = {}, locks = {} }: Omit<ContestOptions, 'method'>,
    send: (stage: ServerStage) => Promise<First>,
    handler: FirstHandler,
  ): Promise<Contest<First>> {
    const go = gate();
    const build = (app: App, stage: ServerStage): void => {
      const pause = framework.middleware(async (_, next) => {
        stage.note('first in');
        await go;
        return next();
      });
      app.route('/first', framework.lockOn('k', guard), pause, (call) => handler(call, stage));
      app.route('/second', framework.lockOn('k'), stage.handler('second'));
    };
    return Contest.#meet(await ServerStage.start(framework, locks, build), send, go);
  }

  /**
   * On an application that the test puts together: the first request takes its way through the middleware under test,
   * and is at `work`. The second one goes through the same application up to a plain guarded route.
   */
  static async through(
    framework: Framework,
    ...how: OptionsFirst<ThroughOptions, (app: App, work: Work, stage: ServerStage) => unknown>
  ): Promise<Contest> {
    const [{ path = '/first', method = 'GET', headers = [], body = '', locks = {} } = {}, build] = optionsOf(how);
    const go = gate();
    const withSecond = (app: App, stage: ServerStage): void => {
      const work = async (): Promise<void> => {
        stage.note('first in');
        await go;
      };
      build(app, work, stage);
      app.route(
        '/second',
        framework.traceContext({ locks: stage.locks }),
        framework.lockOn('k'),
        stage.handler('second'),
      );
    };
    const send = async (stage: ServerStage): Promise<RawClient> => {
      const client = await stage.connect();
      const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
      client.request({ path, method, trace: 'first', headers: [...headers, ...length] }).socket.write(body);
      return client;
    };
    return Contest.#meet(await ServerStage.start(framework, locks, withSecond), send, go);
  }

  static async #meet<First>(
    stage: ServerStage,
    send: (stage: ServerStage) => Promise<First>,
    go: Gate,
  ): Promise<Contest<First>> {
    const first = await send(stage);
    await stage.until('first in');
    const second = stage.visit('/second', 'second');
    await stage.until('waiting second k');
    return new Contest(stage, first, second, go);
  }

  /** Lets the first request go on. */
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
    await this.stage.visit('/nowhere', 'passer-by');
    await this.expectHeld();
  }

  /** Shows that the second request got the key, and was answered. */
  async expectHandedOn(): Promise<void> {
    await this.stage.until('second in');
    await this.second;
    this.stage.expectOrder('first in', 'second in');
    await this.stage.free('k');
  }

  /** As `expectHandedOn`; the first request has released each hold that the store gave it, once. */
  async expectReleasedOnce(holds = 1): Promise<void> {
    await this.expectHandedOn();
    expect([this.stage.count('granted first k'), this.stage.count('released first k')]).toEqual([holds, holds]);
  }

  /** Shows that the first request keeps the key until its work may go on, and the second one gets it then. */
  async expectHeldUntil(work: Gate): Promise<void> {
    await this.expectStillHeld();
    work.open();
    await this.expectHandedOn();
  }

  /** Shows that the first request keeps the key for `abortGraceMs` by this clock, and the second one gets it then. */
  async expectHeldForGrace(clock: ManualClock, abortGraceMs = 30_000): Promise<void> {
    await this.expectStillHeld();
    await clock.advance(abortGraceMs - 1);
    await this.expectStillHeld();
    await clock.advance(1);
    await this.expectHandedOn();
  }

  /** Shows that the first request keeps the key until it goes on, and releases each hold then, once. */
  async expectHeldUntilGo(holds = 1): Promise<void> {
    await this.expectStillHeld();
    this.go();
    await this.expectReleasedOnce(holds);
  }

  /** Shows that the first request was answered, and that its connection, kept alive, has no listener of it any more. */
  async expectAnswer(this: Contest<RawClient>, pattern: RegExp): Promise<void> {
    await this.first.receives(pattern);
    await this.stage.unheard();
  }
}
