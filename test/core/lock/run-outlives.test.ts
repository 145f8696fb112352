import { createLocks, type Hold, LockScopeError, type Locks, lock, MemoryStore, runInTrace } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

describe('lock.run in a scope that ends before its routine', () => {
  let locks: Locks;
  beforeEach(() => {
    locks = createLocks();
  });
  afterEach(() => locks.close({ drainMs: 0 }));

  const tryNow = (key: string): Promise<Hold | null> => runInTrace(() => lock.tryAcquire(key), { locks });

  it('lock.run keeps the lock until the routine has settled, and releases it then', async () => {
    const [entered, work] = [gate(), gate()];
    let running: Promise<string> | undefined;
    await runInTrace(
      async () => {
        running = lock.run('key', async (hold) => {
          entered.open();
          await work;
          hold.assertHeld();
          return 'done';
        });
        await entered;
      },
      { locks },
    );
    expect(await tryNow('key')).toBeNull();
    work.open();
    expect(await running).toBe('done');
    expect(await tryNow('key')).not.toBeNull();
  });

  it('lock.run keeps a lock that was taken by work which waitUntil postpones, and one alongside it that settles earlier', async () => {
    const [first, second] = [gate(), gate()];
    let inner: Promise<void> | undefined;
    await runInTrace(
      async () => {
        const one = await lock.acquire('one');
        const two = await lock.acquire('two');
        one.waitUntil(first);
        inner = second.then(() => undefined);
        two.waitUntil(lock.run('three', () => second));
      },
      { locks },
    );
    first.open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await tryNow('one')).not.toBeNull();
    expect(await tryNow('two')).toBeNull();
    expect(await tryNow('three')).toBeNull();
    second.open();
    await inner;
    await new Promise((resolve) => setImmediate(resolve));
    expect(await tryNow('two')).not.toBeNull();
    expect(await tryNow('three')).not.toBeNull();
  });

  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
    'lock.run never calls its routine without the lock, %d turns of promises before the end',
    async (turns) => {
      const store = new LateStore();
      const late = createLocks({ store });
      await runInTrace(() => lock.run('warm', () => undefined), { locks: late });
      const seen: boolean[] = [];
      let running: Promise<unknown> | undefined;
      const answers = gate();
      store.answers = answers;
      await runInTrace(
        async () => {
          running = lock.run('key', (hold) => void seen.push(hold.isHeld()));
          answers.open();
          for (let i = 0; i < turns; i++) await undefined;
        },
        { locks: late },
      );
      const error = await running?.catch((reason: unknown) => reason);
      expect([error, seen]).toEqual(seen.length > 0 ? [undefined, [true]] : [expect.any(LockScopeError), []]);
      await late.close({ drainMs: 0 });
    },
  );
});

/** It answers an acquire later. */
class LateStore extends MemoryStore {
  answers: Promise<void> = Promise.resolve();

  override async acquire(
    ...args: Parameters<MemoryStore['acquire']>
  ): Promise<Awaited<ReturnType<MemoryStore['acquire']>>> {
    const answer = await super.acquire(...args);
    await this.answers;
    return answer;
  }
}
