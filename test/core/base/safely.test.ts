import { createLocks } from 'reenlock';
import { onAbort } from '../../../src/core/base/abort-signals.ts';
import { afterRound, afterTurn, asMicrotask, systemClock } from '../../../src/core/base/clock.ts';
import { processState } from '../../../src/core/base/process-state.ts';
import { safely } from '../../../src/core/base/safely.ts';

describe('A callback of the package that fails', () => {
  const forget = (): boolean => processState().warned.delete('LOCK_FAULT');
  beforeEach(forget);
  afterEach(() => jest.restoreAllMocks());

  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('of the callback');
      },
    ],
    ['rejects', () => Promise.reject(new Error('of the callback'))],
  ])(
    'A callback that %s does not reach its caller: it is a process warning once, and each time an event',
    async (_, fail) => {
      const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
      const locks = createLocks();
      const events: unknown[] = [];
      locks.on('warning', (event) => events.push(event));
      safely(fail);
      safely(fail);
      await turn();
      expect(events).toHaveLength(2);
      expect(events[0]).toEqual({
        code: 'LOCK_FAULT',
        cause: new Error('of the callback'),
        message: expect.stringContaining('Error: of the callback\n    at '),
      });
      expect(warn.mock.calls).toEqual([
        [expect.stringContaining('Error: of the callback'), expect.objectContaining({ code: 'LOCK_FAULT' })],
      ]);
      await locks.close();
    },
  );

  it('A value that can’t be shown is reported like any other', () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const hostile = {
      get message() {
        throw new Error('of the getter');
      },
      toString() {
        throw new Error('of the text');
      },
    };
    safely(() => {
      throw hostile;
    });
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it.each<[string, (run: () => void) => unknown]>([
    ['a timer', (run) => systemClock.after(0, run, true)],
    ['a microtask', asMicrotask],
    ['the end of a turn', afterTurn],
    ['the end of a round', afterRound],
    [
      'the listener of a signal',
      (run) => {
        const controller = new AbortController();
        onAbort(controller.signal, run);
        controller.abort();
      },
    ],
  ])('A callback of %s that throws does not end the process', async (_, begin) => {
    const warned = new Promise((resolve) => jest.spyOn(process, 'emitWarning').mockImplementation(resolve));
    begin(() => {
      throw new Error('of the callback');
    });
    expect(await warned).toContain('Error: of the callback');
  });
});
