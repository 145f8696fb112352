import { setImmediate as round } from 'node:timers/promises';
import {
  createLocks,
  type Hold,
  isLockError,
  type Locks,
  lock,
  MemoryStore,
  runInTrace,
} from '../../../src/core/index.ts';
import { buildLocks } from '../../../src/core/runtime/locks.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { pathOf } from '../../support/path-of.ts';

/** So many in a round take some milliseconds. */
const few = 150;

const crowd = { waitMs: 60_000, maxWaiters: 100_000, maxWaitersPerKey: 100_000 };

interface Crowd {
  /** Settles when all jobs are over. */
  readonly over: Promise<unknown>;
  /** Opens the gate that holds them up: their holder's, or their own. */
  readonly release: () => void;
}

/** Jobs that queue behind a holder. */
async function queued(locks: readonly Locks[], count: number, job: () => Promise<unknown>): Promise<Crowd> {
  const [held, holder] = [gate(), gate()];
  const hold = (): Promise<void> => {
    held.open();
    return holder;
  };
  const holding = runInTrace(() => lock.run('key', hold), { locks: locks[0] as Locks });
  await held;
  let waiting = 0;
  for (const each of locks)
    each.on('waiting', () => {
      waiting += 1;
    });
  const jobs = Array.from({ length: count }, (_, i) => runInTrace(job, { locks: locks[i % locks.length] as Locks }));
  while (waiting < count) await round();
  return { over: Promise.all([holding, ...jobs]), release: holder.open };
}

/** Readers that hold the key. */
async function inside(locks: Locks, count: number): Promise<Crowd> {
  const leave = gate();
  let entered = 0;
  const stay = (): Promise<void> => {
    entered += 1;
    return leave;
  };
  const jobs = Array.from({ length: count }, () =>
    runInTrace(() => lock.run('key', stay, { mode: 'read' }), { locks }),
  );
  while (entered < count) await round();
  return { over: Promise.all(jobs), release: leave.open };
}

/** The most that a count rises between two looks in rounds of the event loop that follow each other, until work is over. */
async function mostInOneRound(count: () => number, work: Promise<unknown>): Promise<number> {
  let [isOver, before, most] = [false, count(), 0];
  const over = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await round();
    most = Math.max(most, count() - before);
    before = count();
  }
  await over;
  return most;
}

describe('A crowd on one key in memory', () => {
  const open: Locks[] = [];
  const locksOn = (store: MemoryStore): Locks => {
    const locks = createLocks({ store, ...crowd });
    open.push(locks);
    return locks;
  };
  afterEach(async () => {
    for (const locks of open.splice(0)) await locks.close();
  });

  it.each([1, 2])(
    'Writers of %d `Locks` are served in their order, and other work has its turn between them',
    async (n) => {
      const store = new MemoryStore();
      const served: string[] = [];
      const locks = Array.from({ length: n }, () => locksOn(store));
      const writers = await queued(locks, 1_000, () => lock.run('key', (hold) => void served.push(pathOf(hold))));
      const [queue] = (await store.list({ idPrefix: '', limit: 1 })).locks;
      writers.release();
      expect(await mostInOneRound(() => served.length, writers.over)).toBeLessThanOrEqual(n * few);
      expect(served).toHaveLength(1_000);
      expect(served).toEqual(queue?.waiters.map(({ owner }) => owner));
    },
  );

  it('Readers that are let in together enter in parts, and other work has its turn between them', async () => {
    const locks = locksOn(new MemoryStore());
    const leave = gate();
    let entered = 0;
    const enter = (hold: Hold): Promise<void> => {
      entered += 1;
      expect(hold.isHeld()).toBe(true);
      if (entered === 2_000) leave.open();
      return leave;
    };
    const readers = await queued([locks], 2_000, () => lock.run('key', enter, { mode: 'read' }));
    readers.release();
    expect(await mostInOneRound(() => entered, readers.over)).toBeLessThanOrEqual(few);
  });

  it('Holds of many runs that end at once are released in parts, and other work has its turn between them', async () => {
    const locks = locksOn(new MemoryStore());
    let released = 0;
    locks.on('released', () => {
      released += 1;
    });
    const readers = await inside(locks, 2_000);
    readers.release();
    expect(await mostInOneRound(() => released, readers.over)).toBeLessThanOrEqual(few);
    expect(released).toBe(2_000);
  });

  it('Leases of many holds that are due together are renewed in parts, and other work has its turn between them', async () => {
    const clock = new ManualClock();
    const locks = buildLocks({ store: new MemoryStore({ clock }), ...crowd }, clock);
    open.push(locks);
    let renewed = 0;
    locks.on('renewed', () => {
      renewed += 1;
    });
    const readers = await inside(locks, 2_000);
    const renewal = async (): Promise<void> => {
      await clock.advance(10_000 / 3);
      while (renewed < 2_000) await round();
    };
    expect(await mostInOneRound(() => renewed, renewal())).toBeLessThanOrEqual(few);
    readers.release();
    await readers.over;
  });

  describe('Readers of which some have their turn in a later round', () => {
    const crowdOf = async (count: number, options: { waitMs: number }) => {
      const clock = new ManualClock();
      const store = new MemoryStore({ clock });
      const locks = buildLocks({ store, ...crowd }, clock);
      open.push(locks);
      const leave = gate();
      const held: boolean[] = [];
      const enter = (hold: Hold): Promise<void> => {
        held.push(hold.isHeld());
        return leave;
      };
      const codes: string[] = [];
      const readers = await queued([locks], count, () =>
        lock.run('key', enter, { mode: 'read', ...options }).catch((error: unknown) => {
          if (!isLockError(error)) throw error;
          codes.push(error.code);
        }),
      );
      readers.release();
      // The first have entered then.
      await round();
      return { clock, store, leave, held, codes, over: readers.over };
    };

    it('A reader whose claim lapses before its turn does not enter on it: it is let in anew', async () => {
      const { clock, leave, held, over } = await crowdOf(250, { waitMs: 60_000 });
      expect(held.length).toBeLessThan(250);
      clock.skip(3_100);
      while (held.length < 250) await clock.advance(100);
      expect(held).not.toContain(false);
      leave.open();
      await over;
    });

    it('A reader that gives up between its grant and its turn leaves no hold behind', async () => {
      const { clock, store, leave, held, codes, over } = await crowdOf(2_000, { waitMs: 1_000 });
      clock.skip(1_000);
      while (codes.length === 0 && held.length < 2_000) await clock.advance(0);
      leave.open();
      await over;
      expect(held.length + codes.length).toBe(2_000);
      expect(new Set(codes)).toEqual(new Set(['ERR_LOCK_TIMEOUT']));
      expect((await store.list({ idPrefix: '', limit: 1 })).locks).toEqual([]);
    });
  });
});
