import { setImmediate as turn } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { LockStoreError } from '../../../src/core/model/errors.ts';
import type { GroupingDriver, RedisCommand, RedisReplies } from '../../../src/core/stores/redis/drivers/driver.ts';
import { driverOf } from '../../../src/core/stores/redis/drivers/driver-of.ts';
import { RedisStore } from '../../../src/core/stores/redis/redis-store.ts';
import { ThinLocks } from '../../../src/core/stores/redis/thin-locks.ts';
import { longMs, shortMs } from '../../../src/testing/contract/harness.ts';
import { key, type Line, type Process, type StoreStage } from '../../../src/testing/contract/stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { clientLibraries } from '../../support/redis/clients.ts';
import { clusterLibraries } from '../../support/redis/cluster-clients.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { clientInfoRight } from '../../support/redis/rights.ts';
import { warmUp } from '../../support/redis/warm-up.ts';
import { elapseOnRedis } from '../../support/stores/elapse.ts';

watchLeaks();

const record = `reenlock:{${key}}:lock`;
const hourMs = 3_600_000;

/** How often a server has run each command since the last call. */
async function commandsOf(client: Redis): Promise<Readonly<Record<string, number>>> {
  const stats = await client.info('commandstats');
  await client.config('RESETSTAT');
  const own = /^(?:info|config|hello|client|ping|select)/;
  const lines = [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, calls]) => [name, Number(calls)]);
  return Object.fromEntries(lines.filter(([name]) => !own.test(String(name))));
}

describe('Thin locks', () => {
  const stage = useRedis();
  beforeEach(() => warmUp(stage.store));
  const type = () => stage.client.type(record);

  /** A hold of another owner that came and went by scripts: one waited for it. */
  async function contend(): Promise<Process> {
    const process = stage.deafProcess();
    const [first, second] = [process.line(), process.line()];
    await first.hold();
    await second.wait();
    await first.release(longMs);
    await second.hold();
    await second.release(longMs);
    return process;
  }

  /** A thin hold of a process that has a store of its own. */
  async function holderElsewhere(): Promise<Line> {
    const own = stage.store;
    stage.store = new RedisStore({ client: stage.client });
    await warmUp(stage.store);
    const holder = stage.deafProcess().line();
    await holder.hold();
    stage.store = own;
    return holder;
  }

  const thinCycle = { xadd: 1, pexpire: 1, xrange: 1, xdel: 1 };

  it('A key that this process left free is locked and released by plain commands, without a script', async () => {
    const line = stage.deafProcess().line();
    await commandsOf(stage.client);
    await line.hold();
    await line.release(longMs);
    expect(await commandsOf(stage.client)).toEqual(thinCycle);
  });

  it('A key that was not used before is locked by one script, and released by a plain command', async () => {
    const line = stage.deafProcess().line(undefined, { id: 'order:43' });
    await commandsOf(stage.client);
    await line.hold();
    await line.release(longMs);
    const { evalsha, xdel } = await commandsOf(stage.client);
    expect({ evalsha, xdel }).toEqual({ evalsha: 1, xdel: 1 });
  });

  it('A key that another process left free is locked by one script, which keeps it thin', async () => {
    const first = stage.store;
    stage.store = new RedisStore({ client: stage.client });
    await stage.deafProcess().line(undefined, { id: 'order:43' }).hold();
    const line = stage.deafProcess().line();
    await commandsOf(stage.client);
    const { fence } = await line.hold();
    expect(await commandsOf(stage.client)).toMatchObject({ evalsha: 1, xadd: 1 });
    expect(await type()).toBe('stream');
    expect((await line.release(longMs)).status).toBe('released');
    stage.store = first;
    await commandsOf(stage.client);
    const next = stage.deafProcess().line();
    expect((await next.hold()).fence).toBeGreaterThan(fence);
    await next.release(longMs);
    expect(await commandsOf(stage.client)).toEqual(thinCycle);
  });

  it('While this process holds a thin lock, its next acquire goes to a script at once', async () => {
    const process = stage.deafProcess();
    const holder = process.line();
    await holder.hold();
    await commandsOf(stage.client);
    const waiter = process.line();
    await waiter.wait();
    const { evalsha: asked, xadd } = await commandsOf(stage.client);
    expect({ asked, xadd }).toEqual({ asked: 1, xadd: undefined });
    expect(await stage.order()).toEqual({ holds: [holder.holdId], waiters: [waiter.holdId] });
    await commandsOf(stage.client);
    // So does its release: the lock is none that XDEL releases.
    await holder.release(longMs);
    const { evalsha: released, xdel } = await commandsOf(stage.client);
    expect({ released, xdel }).toEqual({ released: 1, xdel: undefined });
  });

  it('A fence rises even if the server loses all its data and the key is locked again in the same millisecond', async () => {
    const process = stage.deafProcess();
    const fences: number[] = [];
    /** In one write with the loss, so that the server goes on at once. */
    const afterLoss = async (line: Line): Promise<number> => {
      const [, { fence }] = await Promise.all([stage.client.flushall(), line.hold()]);
      return fence;
    };
    for (let n = 0; n < 100; n++) {
      const [thin, sure, unsure] = [process.line(), process.line(), process.line()];
      fences.push((await thin.hold()).fence);
      await thin.release(longMs);
      // The process takes the lock for thin and free, and then for held.
      fences.push(await afterLoss(sure), await afterLoss(unsure));
      await unsure.release(longMs);
    }
    expect(fences).toEqual([...new Set(fences)].sort((one, other) => one - other));
  });

  it('If the key is gone, a plain acquire makes none: a script grants it', async () => {
    await stage.client.flushall();
    await commandsOf(stage.client);
    const line = stage.deafProcess().line();
    await line.hold();
    expect(await commandsOf(stage.client)).toMatchObject({ xadd: 2, evalsha: 1 });
    expect(await stage.client.xlen(record)).toBe(1);
    expect(await stage.client.pttl(record)).toBeGreaterThan(hourMs);
  });

  it('An acquire that is given up before its reply does not come again by script', async () => {
    const holder = await holderElsewhere();
    expect(await type()).toBe('stream');
    const line = stage.deafProcess().line();
    const asked = line.ask();
    const released = line.release(longMs);
    await expect(asked).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    expect((await released).status).toBe('absent');
    expect(await stage.order()).toEqual({ holds: [holder.holdId], waiters: [] });
  });

  it('A record of a later format is refused by its name also if this process left the key free', async () => {
    await stage.client.set(record, 'v2');
    const line = stage.deafProcess().line();
    await expect(line.ask()).rejects.toMatchObject({
      outcome: 'not-applied',
      message: expect.stringContaining('of another one'),
    });
    expect(await stage.client.get(record)).toBe('v2');
  });

  it('A thin lock outlives its lease by the time that its fences are remembered for, and no longer lease makes that shorter', async () => {
    const process = stage.deafProcess();
    const longer = process.line();
    await longer.hold({ leaseMs: 60_000 });
    const first = await stage.client.pttl(record);
    expect(first).toBeGreaterThan(hourMs + 50_000);
    expect(first).toBeLessThanOrEqual(hourMs + 60_000);
    await longer.release(longMs);
    const shorter = process.line();
    await shorter.hold({ leaseMs: 1_000 });
    expect(await stage.client.pttl(record)).toBeGreaterThan(hourMs + 50_000);
    await shorter.release(longMs);
    await process.line().hold({ leaseMs: 120_000 });
    expect(await stage.client.pttl(record)).toBeGreaterThan(hourMs + 110_000);
    expect(await type()).toBe('stream');
  });

  it('A key that was contended is thin again when it is granted next, with a higher fence', async () => {
    await contend();
    expect(await type()).toBe('string');
    const line = stage.deafProcess().line();
    // What the other process has released must still be remembered.
    const { fence } = await line.hold();
    expect(await type()).toBe('string');
    await line.release(longMs);
    // Those of the process itself need not be, if they were answered.
    await stage.client.del(record);
    const process = await contend();
    const next = process.line();
    expect((await next.hold()).fence).toBeGreaterThan(fence);
    expect(await type()).toBe('stream');
    await commandsOf(stage.client);
    await next.release(longMs);
    await process.line().hold();
    expect(await commandsOf(stage.client)).toEqual(thinCycle);
  });

  it('A key stays as scripts keep it while a release of this process on it is unanswered', async () => {
    const process = stage.deafProcess();
    const [first, second] = [process.line(), process.line()];
    await first.hold();
    await second.wait();
    await first.release(longMs);
    await second.hold();
    // The reply comes after the next acquire was sent.
    const released = second.release(longMs);
    await process.line().hold();
    expect((await released).status).toBe('released');
    expect(await type()).toBe('string');
    expect((await second.release(longMs)).status).toBe('released');
  });

  it('Calls that scripts alone understand find the hold of a thin lock', async () => {
    const process = stage.deafProcess();
    const line = process.line('owner');
    const { fence, endMs } = await line.hold();
    expect(await stage.inspect()).toMatchObject({ holds: [{ holdId: line.holdId, fence, endMs, mode: 'write' }] });
    expect(await stage.store.list?.({ idPrefix: '', limit: 10 })).toMatchObject({ locks: [{ id: key }] });
    // These only looked.
    expect(await type()).toBe('stream');
    expect(await process.line('owner').ask()).toMatchObject({ status: 'granted', grant: { fence }, otherHolds: 1 });
    expect(await type()).toBe('string');
    expect(await line.hold()).toMatchObject({ fence, endMs });
    expect(await line.renew(fence, 2 * longMs)).toMatchObject({ status: 'renewed' });
    expect((await line.release(longMs)).status).toBe('released');
  });

  it('An entry of a caller that is gone is over with its lease', async () => {
    await stage.client.xadd(record, '*', `process owner hold-1`, shortMs);
    await stage.client.xadd(record, '*', `process owner hold-2`, longMs);
    const line = stage.deafProcess().line();
    expect((await line.ask()).status).toBe('queued');
    expect(await stage.order()).toEqual({ holds: ['hold-1'], waiters: [line.holdId] });
    await elapseOnRedis(shortMs, () => stage.client.time());
    expect((await line.ask()).status).toBe('granted');
  });

  it('A fence rises even if the clock of the server was set back, and if a millisecond has no fence left', async () => {
    const [second] = await stage.client.time();
    const aheadMs = (Number(second) + 86_400) * 1_000;
    const process = stage.deafProcess();
    const next = async () => {
      const line = process.line();
      const { fence } = await line.hold();
      await line.release(longMs);
      return fence - aheadMs * 1_000;
    };
    // As a clock left it that was a day ahead.
    await stage.client.xdel(record, String(await stage.client.xadd(record, `${aheadMs}-996`, 'names', '0')));
    const fences: number[] = [];
    while (fences.length < 5) fences.push(await next());
    expect(fences.slice(0, 3)).toEqual([997, 998, 999]);
    expect(fences[3]).toBeGreaterThan(999);
    expect(fences[4]).toBeGreaterThan(fences[3] as number);
  });

  it('The lease of a thin lock ends in time even if the clock of the server was set back by a day', async () => {
    const [second] = await stage.client.time();
    await stage.client.xadd(record, `${(Number(second) + 86_400) * 1_000}-0`, 'process owner hold', shortMs);
    const line = stage.deafProcess().line();
    expect((await line.ask()).status).toBe('queued');
    await elapseOnRedis(shortMs, () => stage.client.time());
    expect((await line.ask()).status).toBe('granted');
  });

  it('Thin locks and scripts of other processes take turns on one key: fences rise, and each is served', async () => {
    const thin = stage.store;
    const byScript = new RedisStore({ client: stage.client, thinLocks: false });
    const lines: Line[] = [];
    for (let n = 0; n < 60; n++) {
      stage.store = n % 3 === 0 ? byScript : thin;
      lines.push(stage.deafProcess().line());
    }
    // A line stays with the store that its process came to.
    const stores = lines.map((_, n) => (n % 3 === 0 ? byScript : thin));
    const fences = await Promise.all(lines.map((line, n) => served(line, stores[n] as RedisStore)));
    expect(new Set(fences).size).toBe(lines.length);
    expect(await stage.order()).toEqual({ holds: [], waiters: [] });
  });

  /** Polls until it holds, and releases. */
  async function served({ request }: Line, store: StoreStage['store']): Promise<number> {
    const terms = { leaseMs: longMs, queue: true, maxWaiters: 100, livenessMs: longMs };
    while (true) {
      const reply = await store.acquire(request, terms);
      if (reply.status === 'granted') {
        const { status } = await store.release(request, { tombstoneMs: longMs });
        expect(status).toBe('released');
        return reply.grant.fence;
      }
      await turn();
    }
  }
});

describe('Thin locks over a connection that loses replies', () => {
  const stage = useRedis();
  let proxy: TcpProxy;
  let client: Redis;
  beforeEach(async () => {
    proxy = await TcpProxy.start(stage.server.port);
    client = stage.connect({ port: proxy.port });
    await client.ping();
    stage.store = new RedisStore({ client });
    await warmUp(stage.store);
  });
  afterEach(async () => {
    client.disconnect();
    await proxy.stop();
  });
  const losing = (...names: string[]) => proxy.loseReply(([name = '']) => names.includes(name));

  it.each(['xadd', 'xrange'])(
    'An acquire whose reply to %s is lost is one hold, and its release leaves nothing',
    async (name) => {
      void losing(name);
      const line = stage.deafProcess().line();
      expect(await line.ask()).toMatchObject({ status: 'granted', mayArriveLater: true });
      expect(proxy.lost).toBe(1);
      expect(await stage.order()).toEqual({ holds: [line.holdId], waiters: [] });
      expect((await line.release(longMs)).status).toBe('released');
      expect(await stage.order()).toEqual({ holds: [], waiters: [] });
      // As its copy would, which was on the connection that was lost.
      const { process, owner, holdId } = line.request;
      await expect(stage.client.xadd(record, '*', `${process} ${owner} ${holdId}`, longMs)).rejects.toThrow(
        'WRONGTYPE',
      );
    },
  );

  it('A release whose reply is lost has released, and says so', async () => {
    const line = stage.deafProcess().line();
    await line.hold();
    void losing('xdel');
    expect((await line.release(longMs)).status).toBe('released');
    expect(proxy.lost).toBe(1);
    expect(await stage.order()).toEqual({ holds: [], waiters: [] });
  });

  it('A release whose reply is lost takes nothing from the next holder, and does not say that it held', async () => {
    const line = stage.deafProcess().line();
    await line.hold();
    void losing('xdel');
    // Before the release is sent again, somebody else takes the key.
    const released = line.release(longMs);
    while (proxy.lost === 0) await turn();
    const other = new RedisStore({ client: stage.client });
    const before = stage.store;
    stage.store = other;
    const next = stage.deafProcess().line();
    const { fence } = await next.hold();
    stage.store = before;
    await released;
    expect(await other.inspect(key)).toMatchObject({ holds: [{ holdId: next.holdId, fence }] });
  });
});

describe('What thin locks need', () => {
  const stage = useRedis();

  /** A user that may do all but the things named. */
  async function connectAs(name: string, ...without: string[]): Promise<Redis> {
    const more = clientInfoRight(await stage.client.info('server'));
    await stage.client.call('ACL', 'SETUSER', name, 'on', 'nopass', '~*', '&*', '+@all', ...without, ...more);
    const client = stage.connect({ username: name, password: 'any' });
    await client.ping();
    return client;
  }

  it.each(['-xadd', '-xdel', '-xrange'])(
    'A user without the right %s gets one warning, and locks by scripts',
    async (right) => {
      const client = await connectAs(`user${right}`, right);
      stage.store = new RedisStore({ client });
      const process = await stage.process();
      await warmUp(stage.store);
      const line = process.line();
      await line.hold();
      expect(await stage.client.type(record)).toBe('string');
      expect((await line.release(longMs)).status).toBe('released');
      await process.line().hold();
      expect(process.messages).toMatchObject([{ kind: 'warning', code: 'LOCK_THIN_RIGHTS' }]);
      expect(await stage.client.call('ACL', 'LOG')).toHaveLength(1);
      await stage.client.call('ACL', 'LOG', 'RESET');
      await stage.end();
      client.disconnect();
    },
  );

  it('A user who loses the right +xdel at work releases by script, and locks by scripts from then on', async () => {
    const client = await connectAs('loses-xdel');
    stage.store = new RedisStore({ client });
    await warmUp(stage.store);
    const process = stage.deafProcess();
    const [line, next] = [process.line(), process.line()];
    await line.hold();
    await stage.client.call('ACL', 'SETUSER', 'loses-xdel', '-xdel');
    expect((await line.release(longMs)).status).toBe('released');
    await next.hold();
    expect(await stage.client.type(record)).toBe('string');
    expect((await next.release(longMs)).status).toBe('released');
    client.disconnect();
  });

  it('A user who loses the right +xadd at work gets an error for keys that are thin, and locks others by scripts', async () => {
    const client = await connectAs('loses-xadd');
    stage.store = new RedisStore({ client });
    await warmUp(stage.store);
    await stage.client.call('ACL', 'SETUSER', 'loses-xadd', '-xadd');
    const process = stage.deafProcess();
    await expect(process.line().ask()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
    const line = process.line(undefined, { id: 'order:43' });
    await line.hold();
    expect(await stage.client.type('reenlock:{order:43}:lock')).toBe('string');
    expect((await line.release(longMs)).status).toBe('released');
    client.disconnect();
  });

  it('A user who loses the right +xrange at work gets an error, and what it left blocks others for its lease alone', async () => {
    const client = await connectAs('loses-xrange');
    stage.store = new RedisStore({ client });
    await warmUp(stage.store);
    await stage.client.call('ACL', 'SETUSER', 'loses-xrange', '-xrange');
    const line = stage.deafProcess().line();
    await expect(line.ask({ leaseMs: shortMs })).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    await expect(line.release(longMs)).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
    stage.store = new RedisStore({ client: stage.client });
    await elapseOnRedis(shortMs, () => stage.client.time());
    expect((await stage.deafProcess().line().ask()).status).toBe('granted');
    client.disconnect();
  });

  it('An acquire that added its entry, and whose script is refused, has an unknown outcome, and its release leaves nothing', async () => {
    const client = await connectAs('scriptless');
    stage.store = new RedisStore({ client });
    await warmUp(stage.store);
    // As a thin acquire of another process.
    await stage.client.xadd(record, '*', 'process owner hold', longMs);
    await stage.client.call('ACL', 'SETUSER', 'scriptless', '-eval', '-evalsha');
    const line = stage.deafProcess().line();
    await expect(line.ask()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    expect(await stage.client.xlen(record)).toBe(2);
    await stage.client.call('ACL', 'SETUSER', 'scriptless', '+eval', '+evalsha');
    expect((await line.release(longMs)).status).toBe('absent');
    expect(await stage.order()).toEqual({ holds: ['hold'], waiters: [] });
    client.disconnect();
  });

  it('They need a client that sends the commands of a call to one server: all but that of a node-redis cluster', async () => {
    const fits: Record<string, boolean> = {};
    for (const library of clientLibraries) {
      const app = library.connect({ port: stage.server.port });
      await app.ready();
      fits[library.name] = ThinLocks.fits(driverOf(app.client));
      app.close();
    }
    const isNodeRedis = ({ name }: { readonly name: string }) => name.startsWith('node-redis');
    expect(Object.values(fits)).not.toContain(false);
    const nodes = [{ host: '127.0.0.1', port: 1 }];
    for (const library of clusterLibraries) {
      const cluster = await library.connect({ nodes, isImpatient: true });
      expect({ [library.name]: ThinLocks.fits(driverOf(cluster.client)) }).toEqual({
        [library.name]: !isNodeRedis(library),
      });
      cluster.close();
    }
  });

  /** A driver that replies the same to each command. */
  function fakeDriver(replyOf: (command: RedisCommand) => PromiseSettledResult<unknown>, isSameEpoch = true) {
    const asked: RedisCommand[] = [];
    const driver = {
      connectionEpoch: () => 1,
      isSameEpoch: () => isSameEpoch,
      codeOf: (error: unknown) => error,
      link: { isUp: true },
      async sendGroup(_: string, commands: readonly RedisCommand[]): Promise<RedisReplies> {
        asked.push(...commands);
        return commands.map(replyOf);
      },
    } as unknown as GroupingDriver;
    return { thin: new ThinLocks(driver, 'probe', hourMs), asked };
  }

  it('A server that fails is asked again, and one that is too old is asked no more', async () => {
    let reason = 'READONLY';
    const { thin, asked } = fakeDriver(() => ({ status: 'rejected', reason }));
    const { request } = stage.deafProcess().line();
    const terms = { leaseMs: longMs, queue: true, maxWaiters: 1, livenessMs: longMs };
    const counts: number[] = [];
    for (const next of ['ERR', 'ERR', 'ERR']) {
      thin.prepare();
      await turn();
      expect(thin.accepts(request, terms)).toBe(false);
      counts.push(asked.length);
      reason = next;
    }
    expect(counts).toEqual([4, 8, 8]);
    expect(asked.filter(([, name]) => name !== 'probe')).toEqual([]);
  });

  it.each([
    [true, 'not-applied'],
    [false, 'unknown'],
  ])(
    'Of an acquire that is refused, by script too, it is certain that nothing was done only if it was sent once: %p, %s',
    async (wasSentOnce, outcome) => {
      const { thin } = fakeDriver(() => ({ status: 'rejected', reason: 'READONLY' }), wasSentOnce);
      const refused = () => Promise.reject(new LockStoreError('refused', { outcome: 'not-applied' }));
      const { request } = stage.deafProcess().line();
      const acquired = thin.acquire(record, request, longMs, () => !wasSentOnce, refused);
      await expect(acquired).rejects.toMatchObject({ outcome });
    },
  );
});
