import type { Call, Framework, GuardOptions, Handler } from './frameworks.ts';
import type { RawClient } from './raw-client.ts';
import { type Gate, gate, Stage, type StageOptions } from './stage.ts';

export interface ContestOptions {
  /** Of the first request's guard. */
  readonly guard?: GuardOptions;
  readonly locks?: StageOptions;
  readonly method?: string;
}

/**
 * Two requests for one key, `k`: `first` is past its guard and goes on when the test says so, `second` stands in the
 * queue, notes `second in` when its handler runs, and answers.
 */
export class Contest<First = RawClient> {
  readonly stage: Stage;
  readonly first: First;
  readonly second: Promise<unknown>;
  readonly #go: Gate;

  private constructor(stage: Stage, first: First, second: Promise<unknown>, go: Gate) {
    this.stage = stage;
    this.first = first;
    this.second = second;
    this.#go = go;
  }

  /** With a first client that can do what well-behaved ones can't. */
  static start(
    framework: Framework,
    handler: (call: Call, stage: Stage) => unknown,
    { method = 'GET', ...options }: ContestOptions = {},
  ): Promise<Contest> {
    return Contest.opened(framework, handler, options, async (stage) =>
      (await stage.connect()).request({ path: '/first', trace: 'first', method }),
    );
  }

  /** With a first request, for `/first` and of the trace `first`, that the test sends. */
  static async opened<First>(
    framework: Framework,
    handler: (call: Call, stage: Stage) => unknown,
    { guard = {}, locks = {} }: Omit<ContestOptions, 'method'>,
    send: (stage: Stage) => Promise<First>,
  ): Promise<Contest<First>> {
    const go = gate();
    const stage = await Stage.start(
      framework,
      (app, stage) => {
        const pause = framework.middleware(async (_, next) => {
          stage.note('first in');
          await go;
          return next();
        });
        const plain: Handler = (call) => {
          stage.note('second in');
          call.send('second');
        };
        app.route('/first', framework.lockOn('k', guard), pause, (call) => handler(call, stage));
        app.route('/second', framework.lockOn('k'), plain);
      },
      locks,
    );
    const first = await send(stage);
    await stage.until('first in');
    const second = stage.visit('/second', 'second');
    await stage.until('waiting second k');
    return new Contest(stage, first, second, go);
  }

  /** Lets the first request's handler run. */
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
    await this.second;
    this.stage.expectOrder('first in', 'second in');
    await this.stage.free('k');
  }
}
