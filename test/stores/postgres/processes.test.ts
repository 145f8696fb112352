import { createLocks, type Locks, lock, runInTrace } from 'reenlock';
import { usePostgres } from '../../support/postgres/stage.ts';

describe('A process on PostgreSQL', () => {
  const stage = usePostgres();
  const created: Locks[] = [];
  afterEach(async () => {
    await Promise.all(created.splice(0).map((locks) => locks.close({ drainMs: 0 })));
  });

  /** A process that waits for its messages: a poll would come after the test. */
  function locksOf(instance: string): Locks {
    const options = { pollMs: 120_000, waitMs: 300_000, leaseMs: 120_000, storeTimeoutMs: 30_000 };
    const locks = createLocks({ store: stage.storeOf({ pool: stage.connect() }), instance, ...options });
    created.push(locks);
    return locks;
  }

  const longest = 'deployment-with-a-long-name-7d9f8b6c54-x2x7q.eu-central-1:'.padEnd(64, '0');

  it('A process with the longest instance name gets the lock from a process with a short one, and hands it back', async () => {
    const [short, long] = [locksOf('a'), locksOf(longest)];
    const entered: string[] = [];
    const enter = (locks: Locks, name: string) =>
      runInTrace(() => lock.run('order:42', () => void entered.push(name)), { locks, traceId: name });
    const waiting = (locks: Locks) => new Promise<void>((resolve) => void locks.on('waiting', () => resolve()));
    await runInTrace(
      async () => {
        const hold = await lock.acquire('order:42');
        const first = waiting(long);
        const second = waiting(short);
        const outcomes = [enter(long, 'long')];
        await first;
        outcomes.push(enter(short, 'short'));
        await second;
        await hold.release();
        await Promise.all(outcomes);
      },
      { locks: short, traceId: 'holder' },
    );
    expect(entered).toEqual(['long', 'short']);
  });

  it('A process that is gone is found to be gone, also if many releases ask about it at the same moment', async () => {
    const pool = stage.connect({ max: 8, options: '-c search_path=reenlock' });
    const ask = 'SELECT FROM generate_series(1, 2000) WHERE is_listening($1)';
    const replies = await Promise.all(Array.from({ length: 8 }, () => pool.query(ask, ['gone'])));
    expect(replies.map(({ rowCount }) => rowCount)).toEqual(Array(8).fill(0));
  });
});
