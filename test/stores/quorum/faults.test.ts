import { createLocks, LockLostError, lock, runInTrace } from 'reenlock';
import { QuorumStore, RedisStore } from 'reenlock/redis';
import { type Clock, systemClock } from '../../../src/core/base/clock.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { OldRedisStore, RedisNodes } from '../../support/redis/nodes.ts';
import { answersOf } from '../../support/stores/quorum-stage.ts';
import { outcomeOf } from '../../support/stores/set-up.ts';
import { until } from '../../support/until.ts';

const leaseMs = 60_000;

describe('A quorum of real servers', () => {
  const redis = new RedisNodes();
  const stage = new StoreStage();
  const clock = new ManualClock();
  afterEach(async () => {
    await stage.end();
    // Dead servers are asked to give back until the lease is over.
    while (clock.timerCount > 0) await clock.advance(1_000);
    await redis.stop();
  });

  /** On a clock that stands, a busy machine has as long as it takes; a frozen server is silent on the system's. */
  async function start(count: number, storeClock: Clock = clock): Promise<void> {
    await redis.start(count);
    // A client that refuses calls while there is no connection: the node is known to be down at once.
    const clients = redis.connect({ maxRetriesPerRequest: 0 });
    await Promise.all(clients.map((client) => client.ping()));
    const stores = clients.map((client) => new OldRedisStore({ client }));
    stage.store = new QuorumStore({ stores, nodeTimeoutMs: 2_000 }, storeClock);
  }

  /** Whether the server has a hold on the key, by a client of its own. */
  async function isHeldOn(index: number): Promise<boolean> {
    const client = redis.client(redis.servers[index]!.port);
    const { holds } = await new RedisStore({ client }).inspect('order:42');
    client.disconnect();
    return holds.length > 0;
  }

  it('A quorum has nothing to remember of a release on the servers that replied, while another does not', async () => {
    await start(3);
    await redis.servers[0]!.kill();
    const line = stage.deafProcess().line();
    await line.hold({ leaseMs });
    await line.release(leaseMs);
    // What is written beside the lock is for releases that an acquire may still follow.
    const clients = redis.servers.slice(1).map(({ port }) => redis.client(port));
    const keys = await Promise.all(clients.map((client) => client.keys('*')));
    expect(keys).toEqual(clients.map(() => ['reenlock:{order:42}:lock']));
  });

  it('A quorum is not held up by a frozen server, which has nothing left of the acquire when it goes on', async () => {
    await start(3, systemClock);
    const first = stage.deafProcess().line();
    await first.hold({ leaseMs });
    redis.servers[0]!.pause();
    expect((await first.release(leaseMs)).status).toBe('released');
    const line = stage.deafProcess().line();
    const { fence } = await line.hold({ leaseMs });
    expect((await line.renew(fence, leaseMs)).status).toBe('renewed');
    expect((await line.release(leaseMs)).status).toBe('released');
    redis.servers[0]!.resume();
    await until(async () => !(await isHeldOn(0)));
    const next = stage.deafProcess().line();
    expect((await next.hold({ leaseMs })).fence).toBeGreaterThan(fence);
    await next.release();
  });

  it('A failed acquire leaves nothing on the servers that were frozen meanwhile', async () => {
    await start(3, systemClock);
    for (const server of redis.servers.slice(0, 2)) server.pause();
    const line = stage.deafProcess().line();
    const outcome = outcomeOf(line.ask({ leaseMs: 60_000 }));
    await until(() => outcome.error !== undefined);
    expect(answersOf(outcome)).toEqual(['timeout', 'timeout', 'granted']);
    for (const server of redis.servers.slice(0, 2)) server.resume();
    await until(async () => !(await isHeldOn(0)) && !(await isHeldOn(1)) && !(await isHeldOn(2)));
    const next = stage.deafProcess().line();
    await next.hold({ leaseMs });
    await next.release();
  });

  it('A restarted server does not count until its uptime exceeds the longest lease', async () => {
    await redis.start(3);
    const maxLeaseMs = 2_000;
    const stores = redis.connect({ maxRetriesPerRequest: 0 }).map((client) => new RedisStore({ client }));
    stage.store = new QuorumStore({ stores, nodeTimeoutMs: 20_000, maxLeaseMs });
    const isTaken = async (terms = { leaseMs: maxLeaseMs }): Promise<boolean> => {
      const line = stage.deafProcess().line();
      const outcome = outcomeOf(line.ask({ queue: false, ...terms }));
      await until(() => outcome.value !== undefined || outcome.error !== undefined);
      await line.release().catch(() => {});
      return outcome.value?.status === 'granted';
    };
    const uptimes = (): Promise<number[]> => Promise.all(stores.map((store) => store.uptimeMs()));
    /** Whenever that is, two of the three had been up for longer by then. */
    const taken = async (): Promise<void> => {
      await until(() => isTaken());
      const [, second] = (await uptimes()).sort((a, b) => a - b);
      expect(second).toBeGreaterThan(maxLeaseMs);
    };
    // New servers have no say either.
    await taken();
    // Each of them has, by now.
    await until(async () => Math.min(...(await uptimes())) > maxLeaseMs + 1_000);

    await redis.servers[2]!.kill();
    const line = stage.deafProcess().line();
    await line.hold({ leaseMs: maxLeaseMs });
    await redis.servers[1]!.restart();
    await redis.servers[2]!.restart();
    // Two servers have forgotten the hold, which lasts: they would be a quorum.
    await taken();
  });

  it('An application keeps its holds through the loss of one server, and learns of the loss of two', async () => {
    await start(3, systemClock);
    const locks = createLocks({ store: stage.store, leaseMs: 5_000, storeTimeoutMs: 4_000 });
    await runInTrace(
      async () => {
        const hold = await lock.acquire('order:42');
        await redis.servers[0]!.kill();
        await new Promise((resolve) => locks.on('renewed', resolve));
        expect(hold.isHeld()).toBe(true);
        await redis.servers[1]!.kill();
        await new Promise((resolve) => hold.signal.addEventListener('abort', resolve, { once: true }));
        expect(hold.signal.reason).toBeInstanceOf(LockLostError);
      },
      { locks },
    ).catch(() => {
      // The scope's end finds the hold lost.
    });
    await Promise.all(redis.servers.slice(0, 2).map((server) => server.restart()));
    await locks.close();
  });
});
