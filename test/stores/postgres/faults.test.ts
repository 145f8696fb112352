import { createLocks, getLock, type Locks, type LocksOptions, lock, runInTrace } from 'reenlock';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { urlOf } from '../../support/postgres/server.ts';
import { usePostgres } from '../../support/postgres/stage.ts';
import { type CommandTest, TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { until } from '../../support/until.ts';

const key = 'order:42';

/** A statement that has these words. */
const says =
  (words: string): CommandTest =>
  ([statement = '']) =>
    statement.includes(words);

describe('PostgreSQL faults', () => {
  const stage = usePostgres();
  const created: Locks[] = [];
  /** A process: its locks have a pool of their own. */
  const locksOn = (url: string, options: LocksOptions = {}, timeoutMs = 5_000): Locks => {
    const store = stage.storeOf({ pool: stage.connect({ connectionString: url }), timeoutMs });
    const locks = createLocks({ store, pollMs: 100, waitMs: 60_000, storeTimeoutMs: 5_000, ...options });
    created.push(locks);
    return locks;
  };
  afterEach(async () => {
    // Before the stage ends the pools.
    await Promise.all(created.splice(0).map((locks) => locks.close({ drainMs: 0 })));
  });

  /** A waiter that is in the queue; what comes of it can be awaited. */
  async function queued(locks: Locks, traceId: string): Promise<{ readonly fence: Promise<number> }> {
    const isWaiting = new Promise<void>((resolve) => void locks.on('waiting', () => resolve()));
    const fence = runInTrace(() => getLock(key).run(({ fence: own }) => own), { locks, traceId });
    fence.catch(() => {});
    await isWaiting;
    return { fence };
  }

  it.each([
    ['killed (-9)', 'SIGKILL'],
    ['ended by a crash of one of its processes', 'SIGQUIT'],
    ['ended in order, as for a failover by restart', 'SIGINT'],
  ] as const)(
    'After the server is %s and started again, the hold and the queue are still there, and all goes on',
    async (_, signal) => {
      // As PostgreSQL does by default: the servers of the tests are set to lose the last commits in a crash.
      await stage.pool.query('ALTER DATABASE postgres SET synchronous_commit = on');
      const [one, two] = [locksOn(stage.server.url), locksOn(stage.server.url)];
      await runInTrace(
        async () => {
          const hold = await lock.acquire(key, { leaseMs: longMs });
          const waiter = await queued(two, 'waiter');
          process.kill(stage.server.pid, signal);
          await until(async () => (await stage.store.inspect(key).catch(() => undefined)) === undefined);
          await stage.server.restart();
          const { holds, waiters } = (await until(() => stage.store.inspect(key).catch(() => undefined)))!;
          expect([holds.map(({ fence }) => fence), waiters.length]).toEqual([[hold.fence], 1]);
          expect(hold.isHeld()).toBe(true);
          await hold.release();
          expect(await waiter.fence).toBeGreaterThan(hold.fence);
        },
        { locks: one, traceId: 'holder' },
      );
    },
  );

  it.each(['locks', 'waiters', 'processes', 'tombstones', 'edges'])(
    'If somebody deletes the rows of the table %s alone, the holder stays the only owner, and everybody in line is served',
    async (table) => {
      const [one, two] = [locksOn(stage.server.url), locksOn(stage.server.url)];
      const errors: string[] = [];
      for (const locks of [one, two]) locks.on('storeError', ({ error }) => void errors.push(String(error.cause)));
      await runInTrace(
        async () => {
          const hold = await lock.acquire(key, { leaseMs: longMs });
          const line = [await queued(two, 'first'), await queued(two, 'second')];
          await stage.pool.query(`DELETE FROM reenlock.${table}`);
          const stranger = await runInTrace(() => lock.tryAcquire(key), { locks: two, traceId: 'stranger' });
          expect(stranger).toBeNull();
          await hold.extend(longMs);
          await hold.release();
          const fences = await Promise.all(line.map(({ fence }) => fence));
          expect(Math.min(...fences)).toBeGreaterThan(hold.fence);
        },
        { locks: one, traceId: 'holder' },
      );
      expect(errors).toEqual([]);
    },
  );

  it('A server that stays away is an error within `storeTimeoutMs`, and nobody is let in', async () => {
    // What is given up is released in the background, until its lease is over.
    const locks = locksOn(stage.server.url, { storeTimeoutMs: 300, leaseMs: 500 });
    await runInTrace(() => lock.run('warm', () => undefined), { locks });
    await stage.server.kill();
    const refused = runInTrace(() => lock.tryAcquire(key), { locks });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', status: 503 });
    await stage.server.restart();
    await until(() => runInTrace(() => lock.run(key, () => true), { locks }).catch(() => false));
  });

  it('If every connection is cut while one owner holds and others wait, each is served once, in its turn', async () => {
    const proxy = await TcpProxy.start(stage.server.port, 'any');
    const [one, two] = [locksOn(urlOf(proxy.port)), locksOn(urlOf(proxy.port))];
    await runInTrace(
      async () => {
        const hold = await lock.acquire(key, { leaseMs: longMs });
        const waiters = [await queued(two, 'a'), await queued(two, 'b'), await queued(two, 'c')];
        proxy.cut();
        await hold.release();
        const fences = await Promise.all(waiters.map(({ fence }) => fence));
        expect(fences).toEqual([...fences].sort((a, b) => a - b));
        expect(fences[0]).toBeGreaterThan(hold.fence);
      },
      { locks: one, traceId: 'holder' },
    );
    await Promise.all(created.splice(0).map((locks) => locks.close()));
    await stage.end();
    await proxy.stop();
  });

  it.each(['cut', 'hang'] as const)(
    'An acquire whose reply is lost (%s) is an error that leaves no hold',
    async (how) => {
      const proxy = await TcpProxy.start(stage.server.port, 'any');
      const locks = locksOn(urlOf(proxy.port), { storeTimeoutMs: 5_000 }, 1_000);
      await runInTrace(() => lock.run('warm', () => undefined), { locks });
      const isLost = proxy.loseReply(says('"acquire"'), { end: how });
      const outcome = runInTrace(() => lock.tryAcquire(key), { locks });
      await expect(outcome).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
      await isLost;
      await until(async () => (await stage.store.inspect(key)).holds.length === 0);
      await Promise.all(created.splice(0).map((each) => each.close()));
      await stage.end();
      await proxy.stop();
    },
  );

  it('A connection that hangs does not keep the lock of its key from being renewed', async () => {
    const proxy = await TcpProxy.start(stage.server.port, 'any');
    const locks = locksOn(urlOf(proxy.port), { leaseMs: 3_000, storeTimeoutMs: 2_000 }, 5_000);
    const isHeld = await runInTrace(
      async () => {
        const hold = await lock.acquire(key);
        const { endMs } = (await stage.store.inspect(key)).holds[0]!;
        const hangs = proxy.loseReply(says('"acquire"'), { end: 'hang' });
        const refused = runInTrace(() => lock.tryAcquire(key), { locks, traceId: 'other' }).catch(() => undefined);
        await hangs;
        // Until it is renewed or lost.
        await until(async () => (await stage.store.inspect(key)).holds[0]?.endMs !== endMs);
        await refused;
        return hold.isHeld();
      },
      { locks, traceId: 'holder' },
    );
    await Promise.all(created.splice(0).map((each) => each.close({ drainMs: 0 })));
    await stage.end();
    await proxy.stop();
    expect(isHeld).toBe(true);
  });

  it('A lock that is taken in a transaction, which has the only connection of the pool, fails with an error that says so, and the next call succeeds', async () => {
    const pool = stage.connect({ max: 1 });
    const locks = createLocks({ store: stage.storeOf({ pool, timeoutMs: 200 }) });
    created.push(locks);
    const client = await pool.connect();
    await client.query('BEGIN');
    const taken = runInTrace(() => lock.acquire(key), { locks });
    await expect(taken).rejects.toMatchObject({
      code: 'ERR_LOCK_STORE',
      outcome: 'not-applied',
      message:
        'Expected the pool of the lock store to lend a connection within 200 ms, got none: all are in use, or the server accepts no more. Take each lock before you begin a transaction, or give the locks a pool of their own',
    });
    await client.query('ROLLBACK');
    client.release();
    expect((await stage.inspect(key)).holds).toEqual([]);
    expect(await runInTrace(() => lock.run(key, () => 'in'), { locks })).toBe('in');
  });

  it('Fences rise even if the clock was set back, and a clock that was set forward ends leases', async () => {
    const process = stage.deafProcess();
    const first = process.line();
    const { fence } = await first.hold();
    try {
      await setClock(-3_600_000_000);
      await first.release();
      const second = await process.line().hold();
      expect(second.fence).toBe(fence + 1);
      await setClock(3_600_000_000);
      const third = await process.line().hold();
      expect(third.fence).toBeGreaterThan(second.fence);
      expect((await stage.order()).holds).toHaveLength(1);
    } finally {
      await setClock(0);
    }
  });

  /** The clock of the functions; that of the machine can't be set. */
  async function setClock(offsetUs: number): Promise<void> {
    const now = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint + ${offsetUs}`;
    await stage.pool.query(
      `CREATE OR REPLACE FUNCTION reenlock.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT ${now} $$`,
    );
  }
});
