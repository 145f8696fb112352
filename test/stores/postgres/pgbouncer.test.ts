import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { createLocks, type Locks, lock, runInTrace } from 'reenlock';
import { type PgBouncer, startPgBouncer } from '../../support/postgres/pgbouncer.ts';
import { usePostgres } from '../../support/postgres/stage.ts';
import { Stream } from '../../support/stores/stream.ts';
import { until } from '../../support/until.ts';

describe('PostgresStore behind PgBouncer', () => {
  const stage = usePostgres();
  const name = () => `process-${randomUUID()}`;
  let bouncer: PgBouncer;
  let pool: Pool;
  async function begin(mode: 'transaction' | 'session'): Promise<void> {
    bouncer = await startPgBouncer(stage.server, mode);
    pool = stage.connect({ connectionString: bouncer.url, max: 3 });
  }
  afterEach(async () => {
    await stage.end();
    await bouncer.stop();
  });

  it('In transaction mode, the store finds that LISTEN does not work, warns once, and closes the connection', async () => {
    await begin('transaction');
    const store = stage.storeOf({ pool });
    expect(store.capabilities.reachability).toBe(true);
    const [one, two] = [new Stream(), new Stream()];
    const ends = [await store.subscribe(name(), one.listen)];
    ends.push(await store.subscribe(name(), two.listen));
    for (const { messages } of [one, two]) {
      expect(messages).toEqual([
        { kind: 'warning', code: 'LOCK_POSTGRES_POLLING', message: expect.stringContaining('`listen`') },
      ]);
    }
    expect(store.capabilities.reachability).toBe(false);
    expect(await stage.listeners()).toEqual([]);
    for (const end of ends) await end();
  });

  it('In transaction mode, polls serve waiters of several processes, and none is skipped', async () => {
    await begin('transaction');
    const stores = [1, 2].map(() => stage.storeOf({ pool }));
    // What asks before that is known is passed over until it polls.
    const ends = await Promise.all(stores.map((store) => store.subscribe(name(), () => {})));
    const all = stores.map((store) => createLocks({ store, pollMs: 100 }));
    const order: number[] = [];
    const jobs: Promise<void>[] = [];
    await runInTrace(
      async () => {
        const hold = await lock.acquire('order:42');
        for (let n = 0; n < 6; n++) {
          const queued = new Promise<void>((resolve) => void all[n % 2]!.on('waiting', () => resolve()));
          jobs.push(turn(all[n % 2]!, n));
          await queued;
        }
        await hold.release();
      },
      { locks: all[0]! },
    );
    await Promise.all(jobs);
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
    await Promise.all(all.map((locks) => locks.close()));
    for (const end of ends) await end();

    function turn(locks: Locks, n: number): Promise<void> {
      return runInTrace(() => lock.run('order:42', () => void order.push(n)), { locks, traceId: `job-${n}` });
    }
  });

  it('With `listen: false`, the store tries no LISTEN and warns of nothing', async () => {
    await begin('transaction');
    const store = stage.storeOf({ pool, listen: false });
    expect(store.capabilities.reachability).toBe(false);
    const stream = new Stream();
    const end = await store.subscribe(name(), stream.listen);
    expect(stream.messages).toEqual([]);
    expect(await stage.listeners()).toEqual([]);
    await end();
  });

  it('With a `listen` that bypasses PgBouncer, grants arrive by message, and a dead process is skipped', async () => {
    await begin('transaction');
    stage.store = stage.storeOf({ pool, listen: stage.server.url });
    const [one, two] = [await stage.process(), await stage.process()];
    const holder = one.line();
    await holder.hold();
    const dead = await stage.deafProcess().line().wait();
    const waiter = await two.line().wait();
    await holder.release();
    expect(await two.granted(waiter)).toMatchObject({ isClaim: true });
    expect((await stage.order()).waiters).toEqual([dead.holdId]);
  });

  it('A process that polls waits alongside one that listens, each in its turn', async () => {
    await begin('transaction');
    const polling = stage.storeOf({ pool, listen: false });
    const [one, two] = [await stage.process(), await stage.process()];
    const holder = one.line();
    await holder.hold();
    const { request } = stage.deafProcess().line();
    const terms = { leaseMs: 60_000, queue: true, maxWaiters: 10, livenessMs: 60_000 };
    expect(await polling.acquire(request, terms)).toMatchObject({ status: 'queued' });
    const waiter = await two.line().wait();
    await holder.release();
    expect(await stage.order()).toEqual({ holds: [request.holdId], waiters: [waiter.holdId] });
    expect(await polling.acquire(request, terms)).toMatchObject({ status: 'granted', grant: { isClaim: true } });
    await polling.release(request, { tombstoneMs: 0 });
    expect(await two.granted(waiter)).toMatchObject({ isClaim: true });
  });

  it('In session mode, one session is lent while the store listens, and grants arrive by message', async () => {
    await begin('session');
    stage.store = stage.storeOf({ pool });
    const process = await stage.process();
    expect(stage.store.capabilities.reachability).toBe(true);
    expect(process.messages).toEqual([]);
    expect(await stage.listeners()).toHaveLength(1);
    const other = await stage.process();
    const holder = process.line();
    await holder.hold();
    const waiter = await other.line().wait();
    await holder.release();
    expect(await other.granted(waiter)).toMatchObject({ isClaim: true });
    for (const each of [process, other]) await each.leave();
    await until(async () => (await stage.listeners()).length === 0);
  });
});
