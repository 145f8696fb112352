import { type Hold, lock } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';

const setUp = coreTests();

/** What the job around does: a `run` is a branch of its own, what `acquire` got is that of the job. */
type Entry = 'waits' | 'enters';

describe('A block that passed work to `waitUntil`', () => {
  it.each<[string, Entry, (work: PromiseLike<void>) => Promise<unknown>]>([
    ['run', 'waits', (work) => lock.run('key', (hold) => hold.waitUntil(work))],
    ['runAll', 'waits', (work) => lock.runAll(['key', 'other'], (hold) => hold.waitUntil(work))],
    [
      'a run that fails',
      'waits',
      (work) =>
        lock
          .run('key', (hold) => {
            hold.waitUntil(work);
            throw new Error('routine');
          })
          .catch(() => {}),
    ],
    ['`await using`', 'enters', async (work) => disposed(await lock.acquire('key'), work)],
    [
      '`await using` of several keys',
      'enters',
      async (work) => disposed(await lock.acquireAll(['key', 'other']), work),
    ],
  ])(
    '%s ends at once, and its keys are released when the work has settled; the job itself %s meanwhile',
    async (_, entry, block) => {
      const setup = setUp();
      const { job, clock, store } = setup;
      const work = gate();
      const own = job();
      await own.in(() => block(work));
      const stranger = outcomeOf(job().in(() => lock.run('key', () => {})));
      const next = outcomeOf(own.in(() => lock.run('key', () => {})));
      await clock.settle();
      expect([stranger.state, next.state]).toEqual(['pending', entry === 'waits' ? 'pending' : 'fulfilled']);
      work.open();
      await Promise.all([stranger.settled, next.settled]);
      expect([stranger.state, next.state]).toEqual(['fulfilled', 'fulfilled']);
      expect(await store.remains()).toEqual([]);
    },
  );

  it('An explicit release does not wait for the work', async () => {
    const { job, store } = setUp();
    const work = gate();
    await job().in(async () => {
      const hold = await lock.acquire('key');
      hold.waitUntil(work);
      await hold.release();
    });
    expect(await store.remains()).toEqual([]);
    work.open();
  });
});

async function disposed(
  hold: Pick<Hold, 'waitUntil' | typeof Symbol.asyncDispose>,
  work: PromiseLike<void>,
): Promise<void> {
  hold.waitUntil(work);
  await hold[Symbol.asyncDispose]();
}
