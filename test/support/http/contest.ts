import { gate } from '../gate.ts';
import { Pair } from '../stores/pair.ts';
import type { Call, Framework, GuardOptions, Handler } from './frameworks.ts';
import type { RawClient } from './raw-client.ts';
import { ServerStage, type ServerStageOptions } from './server-stage.ts';

export interface ContestOptions {
  /** Of the first request's guard. */
  readonly guard?: GuardOptions;
  readonly locks?: ServerStageOptions;
  readonly method?: string;
}

/** On an application of the two requests' own: the first one is past its guard, and its handler runs when it may go on. */
export class Contest<First = RawClient> extends Pair<First> {
  /** With a first client that can do what well-behaved ones can't. */
  static start(
    framework: Framework,
    handler: (call: Call, stage: ServerStage) => unknown,
    { method = 'GET', ...options }: ContestOptions = {},
  ): Promise<Contest> {
    return Contest.opened(framework, handler, options, async (stage) =>
      (await stage.connect()).request({ path: '/first', trace: 'first', method }),
    );
  }

  /** With a first request, for `/first` and of the trace `first`, that the test sends. */
  static async opened<First>(
    framework: Framework,
    handler: (call: Call, stage: ServerStage) => unknown,
    { guard = {}, locks = {} }: Omit<ContestOptions, 'method'>,
    send: (stage: ServerStage) => Promise<First>,
  ): Promise<Contest<First>> {
    const go = gate();
    const stage = await ServerStage.start(
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
}
