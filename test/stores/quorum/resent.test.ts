import type { Redis } from 'ioredis';
import { createLocks, type Locks, lock, runInTrace } from 'reenlock';
import { QuorumStore } from 'reenlock/redis';
import { acquire } from '../../../src/stores/redis/scripts.generated.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { OldRedisStore, RedisNodes } from '../../support/redis/nodes.ts';

const id = 'order:42';

describe('A try that a quorum refuses', () => {
  const redis = new RedisNodes();
  let proxy: TcpProxy;
  let nodes: Redis[];
  let holder: Application;
  let other: Application;
  beforeAll(() => redis.start(3));
  beforeEach(async () => {
    proxy = await TcpProxy.start(redis.servers[0]!.port);
    nodes = redis.connect();
    await Promise.all(nodes.map((node) => node.flushall()));
    holder = await application(redis.connect());
    other = await application([redis.client(proxy.port), ...redis.connect().slice(1)]);
  });
  afterEach(async () => {
    await redis.disconnect();
    await proxy.stop();
  });
  afterAll(() => redis.stop());

  /** Another application's try, whose reply from the first node may be lost; and what that node was sent. */
  async function tried(losesReply: boolean): Promise<{ outcome: unknown; sent: readonly string[] }> {
    let sent: readonly string[] = [];
    void proxy.loseReply((words) => {
      if (words[1] !== acquire.sha1) return false;
      sent = words;
      return losesReply;
    });
    const outcome = await runInTrace(() => lock.tryAcquire(id), { locks: other.locks, traceId: 'another' }).catch(
      (error) => error,
    );
    expect(proxy.lost).toBe(losesReply ? 1 : 0);
    await other.end();
    return { outcome, sent };
  }

  /** The same, while the key is held. */
  function refused(losesReply: boolean): ReturnType<typeof tried> {
    return runInTrace(() => lock.run(id, () => tried(losesReply)), { locks: holder.locks }).finally(holder.end);
  }

  it('A refused try leaves nothing on a node that got it twice, if the copy arrives when the key is free', async () => {
    const { outcome, sent } = await refused(true);
    expect(outcome).toBeNull();
    const [command = '', ...args] = sent;
    expect(await nodes[0]!.call(command, ...args)).toContain('cancelled');
    expect((await new OldRedisStore({ client: nodes[0]! }).inspect(id)).holds).toEqual([]);
  });

  it('A refused try costs no further call if each node got it once', async () => {
    await runInTrace(
      async () => {
        const hold = await lock.acquire(id);
        const before = await runs();
        expect((await tried(false)).outcome).toBeNull();
        expect(await runs()).toEqual(before.map((count) => count + 1));
        await hold.release();
      },
      { locks: holder.locks },
    );
    await holder.end();
  });

  /** How many scripts each node has run. */
  async function runs(): Promise<number[]> {
    const stats = await Promise.all(nodes.map((node) => node.info('commandstats')));
    return stats.map((text) => Number(/evalsha:calls=(\d+)/.exec(text)?.[1]));
  }
});

describe('A release to which too few nodes replied in time', () => {
  const redis = new RedisNodes();
  beforeAll(() => redis.start(3));
  afterEach(() => redis.disconnect());
  afterAll(() => redis.stop());

  it('A release is one when it is tried again, even if the nodes no longer remember their replies', async () => {
    const clients = redis.connect();
    await Promise.all(clients.map((client) => client.ping()));
    // On a clock that stands, no node that is late is left to answer beside a quorum.
    const clock = new ManualClock();
    const stage = new StoreStage();
    stage.store = new QuorumStore({ stores: clients.map((client) => new OldRedisStore({ client })) }, clock);
    const process = stage.deafProcess();
    // Then the servers know the scripts: each is sent a release once.
    const first = process.line();
    await first.hold();
    await first.release();
    const line = process.line();
    await line.hold();
    const slow = redis.servers.slice(1);
    for (const server of slow) server.pause();
    const released = line.release(longMs);
    await clients[0]!.ping();
    await Promise.all([expect(released).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' }), clock.advance(250)]);
    for (const server of slow) server.resume();
    // Comes after the answers to all that was sent.
    await Promise.all(clients.map((client) => client.ping()));
    const next = process.line();
    await next.hold();
    await next.release(longMs);
    expect(await line.release(longMs)).toMatchObject({ status: 'released' });
    expect(clock.timerCount).toBe(0);
  });
});

interface Application {
  readonly locks: Locks;
  /** Comes after the answers to all that was sent. */
  readonly end: () => Promise<unknown>;
}

async function application(clients: readonly Redis[]): Promise<Application> {
  await Promise.all(clients.map((client) => client.ping()));
  const stores = clients.map((client) => new OldRedisStore({ client }));
  const store = new QuorumStore({ stores, nodeTimeoutMs: 5_000 });
  const locks = createLocks({ store, storeTimeoutMs: 60_000 });
  return { locks, end: () => locks.close().then(() => Promise.all(clients.map((client) => client.quit()))) };
}
