import { Pool } from 'pg';
import { PostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { startPgBouncer } from '../../support/postgres/pgbouncer.ts';
import { type PostgresServer, startPostgres, urlOf } from '../../support/postgres/server.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { Stream } from '../../support/stores/stream.ts';
import { until } from '../../support/until.ts';

describe('PostgresStore on a primary that another server replaces, while both run', () => {
  const stage = new StoreStage();
  let servers: PostgresServer[];
  let ends: (() => Promise<unknown>)[];
  beforeAll(async () => {
    servers = await Promise.all([startPostgres(), startPostgres()]);
    for (const { url } of servers) {
      const pool = new Pool({ connectionString: url });
      await new PostgresStore({ pool }).migrate();
      await pool.end();
    }
  }, 60_000);
  beforeEach(() => {
    ends = [];
  });
  afterEach(async () => {
    await stage.end();
    for (const end of ends.reverse()) await end();
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  const portOf = (place: number): number => (servers[place] as PostgresServer).port;

  function poolAt(port: number): Pool {
    const pool = new Pool({ connectionString: urlOf(port) });
    pool.on('error', () => {}); // Its connections are cut.
    ends.push(() => pool.end());
    return pool;
  }

  /** A name of the primary. */
  async function startProxy(): Promise<TcpProxy> {
    const proxy = await TcpProxy.start(portOf(0), 'any');
    ends.push(() => proxy.stop());
    return proxy;
  }

  it('The channel follows the first waiter to the new primary, and hand-offs are messages again', async () => {
    const [ofPool, ofListener] = [await startProxy(), await startProxy()];
    const pool = poolAt(ofPool.port);
    stage.store = new PostgresStore({ pool, listen: urlOf(ofListener.port) });
    const stream = new Stream();
    ends.push(await stage.store.subscribe('waiting', stream.listen));
    await stream.next('resubscribed');
    const lock = { id: 'orders:1' };
    await stage.deafProcess().line(undefined, lock).hold();
    for (const name of [ofPool, ofListener]) name.lead(portOf(1));
    // Connections of the pool move, and the one that listens stays where it is.
    ofPool.cut();
    await until(() => pool.totalCount === 0);
    const waits = { ...stage.deafProcess().line(undefined, lock).request, process: 'waiting' };
    const terms = { leaseMs: 60_000, queue: true, maxWaiters: 10, livenessMs: 60_000 };
    const holder = stage.deafProcess().line(undefined, lock);
    await holder.hold();
    expect(await stage.store.acquire(waits, terms)).toMatchObject({ status: 'queued' });
    expect((await stream.next('fault')).error.message).toContain('the server that the pool leads to');
    await stream.next('resubscribed');
    await holder.release();
    expect((await stream.next('granted')).grant.holdId).toBe(waits.holdId);
  });

  it('A pooler on another server than the pool is an error that passes, and no reason to poll for ever', async () => {
    const bouncer = await startPgBouncer(servers[0] as PostgresServer, 'session');
    ends.push(() => bouncer.stop());
    const ofListener = await TcpProxy.start(Number(new URL(bouncer.url).port), 'any');
    ends.push(() => ofListener.stop());
    const store = new PostgresStore({ pool: poolAt(portOf(1)), listen: urlOf(ofListener.port), timeoutMs: 1_000 });
    stage.store = store;
    const stream = new Stream();
    await expect(store.subscribe('waiting', stream.listen)).rejects.toMatchObject({
      cause: { message: expect.stringContaining('connect both to the same database') },
    });
    ofListener.lead(portOf(1));
    ends.push(await store.subscribe('waiting', stream.listen));
    expect(store.capabilities.reachability).toBe(true);
  });
});
