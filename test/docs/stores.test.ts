import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { type LockStore, type Locks, lock, MemoryStore, runInTrace } from 'reenlock';
import { MySqlCas, mysqlCasTable } from 'reenlock/mysql';
import { PostgresStore } from 'reenlock/postgres';
import { CasStore, PostgresCas, postgresCasTable, QuorumStore, RedisCas, RedisStore } from 'reenlock/redis';
import { systemClock } from '../../src/core/base/clock.ts';
import { buildLocks } from '../../src/core/runtime/locks.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { type MariadbServer, startMariadb } from '../support/mysql/server.ts';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';
import { OldRedisStore } from '../support/redis/nodes.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { TripCounter } from '../support/redis/trip-counter.ts';
import { until } from '../support/until.ts';
import { readDocument, sectionOf, tableOf } from './markdown.ts';

/** One process: a `Locks` with connections of its own. It polls when the test says so. */
interface Side {
  readonly clock: ManualClock;
  readonly locks: Locks;
  /** To each server. */
  readonly counters: readonly TripCounter[];
}

/** A process names its holds as no other does. */
class OwnClock extends ManualClock {
  override randomId(): string {
    return systemClock.randomId();
  }
}

type Connect = (open: (port: number) => Promise<TripCounter>, ends: (() => unknown)[]) => Promise<LockStore>;

describe('the round trips that "which store to take" tells of', () => {
  let servers: RedisServer[] = [];
  let alone: RedisServer;
  let postgres: PostgresServer;
  let mariadb: MariadbServer;
  beforeAll(async () => {
    const primary = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] });
    const follow = ['--replicaof', `127.0.0.1 ${primary.port}`];
    const cluster = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'];
    const others = [startRedis(), startRedis(), startRedis({ args: follow }), startRedis({ args: cluster })];
    servers = [primary, ...(await Promise.all(others))];
    alone = servers[4]!;
    postgres = await startPostgres();
    const database = new Pool({ connectionString: postgres.url });
    await database.query(postgresCasTable());
    await new PostgresStore({ pool: database }).migrate();
    await database.end();
    mariadb = await startMariadb();
    const tables = createPool(mariadb.url);
    await tables.query(mysqlCasTable());
    await tables.end();
    const [admin, clusterAdmin] = [new Redis(primary.port), new Redis(alone.port)];
    await until(async () => /^slave0:.*state=online/m.test(await admin.info('replication')));
    await clusterAdmin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
    await until(async () => /^cluster_state:ok\r$/m.test(String(await clusterAdmin.cluster('INFO'))));
    admin.disconnect();
    clusterAdmin.disconnect();
  });
  afterAll(() => Promise.all([...servers, postgres, mariadb].map((server) => server.stop())));

  /** By the first cell of the row. */
  const stores: Readonly<Record<string, Connect>> = {
    '`MemoryStore`': async () => new MemoryStore(),
    '`RedisStore`, one server or Sentinel': async (open, ends) =>
      new RedisStore({ client: await client(servers[0]!, open, ends) }),
    '`RedisStore`, `waitReplicas`': async (open, ends) =>
      new RedisStore({ client: await client(servers[0]!, open, ends), waitReplicas: 1 }),
    '`RedisStore`, `Cluster`': async (open, ends) => {
      const { port } = await open(alone.port);
      const natMap = { [`127.0.0.1:${alone.port}`]: { host: '127.0.0.1', port } };
      const cluster = new Cluster([{ host: '127.0.0.1', port }], { natMap });
      ends.push(() => cluster.disconnect());
      return new RedisStore({ client: cluster });
    },
    '`PostgresStore`': async (open, ends) => new PostgresStore({ pool: await pool(postgres, open, ends) }),
    '`QuorumStore`': async (open, ends) => {
      const clients = await Promise.all(servers.slice(0, 3).map((server) => client(server, open, ends)));
      const joined: Promise<unknown>[] = [];
      const stores = clients.map((node) => new GatheredStore(node, joined));
      return new QuorumStore({ stores, nodeTimeoutMs: 10_000 });
    },
    '`CasStore` on Redis': async (open, ends) => {
      const adapter = new RedisCas({ client: await client(servers[0]!, open, ends) });
      ends.push(() => adapter.close());
      return new CasStore({ adapter, prefix: 'cas:', deadlineMs: 10_000 });
    },
    '`CasStore` on PostgreSQL': async (open, ends) =>
      new CasStore({ adapter: new PostgresCas({ pool: await pool(postgres, open, ends) }), deadlineMs: 10_000 }),
    '`CasStore` on MariaDB': async (open, ends) => {
      const uri = mariadb.url.replace(`:${mariadb.port}`, `:${(await open(mariadb.port)).port}`);
      const opened = createPool({ uri, connectionLimit: 1 });
      ends.push(() => opened.end());
      return new CasStore({ adapter: new MySqlCas({ pool: opened }), deadlineMs: 10_000 });
    },
  };

  const table = tableOf(sectionOf(readDocument('docs/stores/choose.md'), 'What it costs'));

  it('has a row for each of the stores', () => {
    expect(table.map((row) => row.store)).toEqual(Object.keys(stores));
  });

  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  it.each(Object.keys(stores))('%s: is what is counted on the wire', async (name) => {
    const shared = name === '`MemoryStore`' ? new MemoryStore() : undefined;
    const sides = await Promise.all([1, 2].map(() => side(shared, stores[name]!, ends)));
    const [one, two] = sides as [Side, Side];
    const isTold = /Memory|RedisStore|PostgresStore/.test(name);
    // Connections are opened, and servers get to know the scripts, in a round that is not counted.
    await play(one, two, 'order:1', isTold);
    if (name.includes('Cluster')) await until(async () => ((await channelsOf(alone)) as string[]).length > 0);
    const { store: _, ...told } = table.find((row) => row.store === name)!;
    const counted = await play(one, two, 'order:2', isTold);
    const wrong = Object.entries(told).filter(([step, cell]) => !fits(cell, counted[step]));
    expect({ counted, wrong }).toEqual({ counted, wrong: [] });
  });
});

/**
 * A node whose stream begins when all of them have been asked what to warn of: the quorum goes on without the last one, whose
 * round trips would then be taken for those of a step.
 */
class GatheredStore extends OldRedisStore {
  readonly #client: Redis;
  readonly #joined: Promise<unknown>[];

  /** `joined`: shared by the nodes. */
  constructor(node: Redis, joined: Promise<unknown>[]) {
    super({ client: node, prefix: 'quorum:' });
    this.#client = node;
    this.#joined = joined;
  }

  override async subscribe(...args: Parameters<RedisStore['subscribe']>): ReturnType<RedisStore['subscribe']> {
    const stream = super.subscribe(...args);
    // Answered after what the store asked the server on the same connection.
    this.#joined.push(stream.then(() => this.#client.ping()));
    const end = await stream;
    await Promise.all(this.#joined);
    return end;
  }
}

/** Those in shards. */
async function channelsOf(server: RedisServer): Promise<unknown> {
  const admin = new Redis(server.port);
  const channels = await admin.call('PUBSUB', 'SHARDCHANNELS');
  admin.disconnect();
  return channels;
}

async function client(server: RedisServer, open: (port: number) => Promise<TripCounter>, ends: (() => unknown)[]) {
  const redis = new Redis((await open(server.port)).port);
  ends.push(() => redis.disconnect());
  return redis;
}

async function pool(server: PostgresServer, open: (port: number) => Promise<TripCounter>, ends: (() => unknown)[]) {
  const { port } = await open(server.port);
  const opened = new Pool({ connectionString: server.url.replace(`:${server.port}`, `:${port}`), max: 1 });
  opened.on('error', () => {});
  ends.push(() => opened.end());
  return opened;
}

async function side(shared: LockStore | undefined, connect: Connect, ends: (() => unknown)[]): Promise<Side> {
  const counters: TripCounter[] = [];
  const open = async (port: number): Promise<TripCounter> => {
    const counter = await TripCounter.start(port);
    counters.push(counter);
    ends.push(() => counter.stop());
    return counter;
  };
  const clock = new OwnClock();
  const store = shared ?? (await connect(open, ends));
  const locks = buildLocks({ store }, clock);
  ends.push(() => Promise.all([locks.close(), clock.advance(10_000)]));
  return { clock, locks, counters };
}

/** One process has the lock, another waits for it: what each step costs its own process, at the server that has most of it. */
async function play(one: Side, two: Side, key: string, isTold: boolean): Promise<Record<string, number>> {
  const costs: Record<string, number> = {};
  async function count<T>(step: string, { counters }: Side, work: () => Promise<T>): Promise<T> {
    const before = counters.map(({ trips }) => trips);
    const answer = await work();
    costs[step] = Math.max(0, ...counters.map(({ trips }, i) => trips - before[i]!));
    return answer;
  }
  const [holder, waiter] = [await job(one.locks), await job(two.locks)];
  const first = await count('a new key', one, () => holder.in(() => lock.acquire(key)));
  const inner = await count('re-entry', one, () => holder.in(() => lock.acquire(key)));
  await inner.release();
  await count('release', one, () => first.release());
  const second = await count('acquire', one, () => holder.in(() => lock.acquire(key)));
  const { granted } = await count('be queued', two, async () => {
    const queued = new Promise<void>((resolve) => two.locks.on('waiting', () => resolve()));
    const acquired = waiter.in(() => lock.acquire(key));
    await queued;
    return { granted: acquired };
  });
  const third = await count('be granted', two, async () => {
    const before = tripsOf(two);
    await count('hand off', one, () => second.release());
    // Where no message comes, or one that says only that the key is free, the next try is made when its time has come.
    while (!isTold && tripsOf(two) === before) await two.clock.advance(10);
    return granted;
  });
  // The job's end would not wait for it, and its connections may be over by then.
  await third.release();
  await Promise.all([holder.end(), waiter.end()]);
  return costs;
}

interface Job {
  in<T>(work: () => T): T;
  end(): Promise<void>;
}

/** A job that no other knows: what works for a named trace also costs the search for deadlocks. */
async function job(locks: Locks): Promise<Job> {
  const events = new EventEmitter();
  const begun = once(events, 'begun');
  const ended = once(events, 'ended');
  const over = runInTrace(
    async () => {
      events.emit('begun', AsyncLocalStorage.snapshot());
      await ended;
    },
    { locks },
  );
  const [snapshot] = (await begun) as [Job['in']];
  return {
    in: snapshot,
    async end() {
      events.emit('ended');
      await over;
    },
  };
}

function tripsOf({ counters }: Side): number {
  return counters.reduce((sum, { trips }) => sum + trips, 0);
}

/** `3`, `2 or 3`, `1 or more`. */
function fits(cell: string, count: number | undefined): boolean {
  if (count === undefined) return false;
  return cell.endsWith('or more') ? count >= Number.parseInt(cell, 10) : cell.split(' or ').includes(String(count));
}
