import { once } from 'node:events';
import { Redis } from 'ioredis';
import { createLocks, getLock, type Hold, type Locks, runInTrace } from 'reenlock';
import type { RedisClient } from 'reenlock/redis';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import type { OpenClient } from '../../support/redis/client.ts';
import { Rush } from '../../support/redis/rush.ts';
import { type SentinelGroup, startSentinelGroup } from '../../support/redis/sentinel.ts';
import { newestSentinelLibraries, sentinelLibrariesForFaults } from '../../support/redis/sentinel-clients.ts';
import type { RedisServer } from '../../support/redis/server.ts';
import { until } from '../../support/until.ts';

jest.setTimeout(180_000);

/** The figures of the guide; they are not promised. */
function say(figures: string): void {
  if (process.env.REPORT !== undefined) process.stderr.write(`${figures}\n`);
}

describe.each(newestSentinelLibraries)('RedisStore behind Sentinel, with $name', (library) => {
  let group: SentinelGroup;
  const clients: Pick<OpenClient, 'close'>[] = [];
  const processes: Locks[] = [];
  beforeEach(async () => {
    group = await startSentinelGroup();
  });
  afterEach(async () => {
    await Promise.all(processes.splice(0).map((locks) => locks.close({ drainMs: 0 })));
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await group.stop();
  });

  async function connect(): Promise<RedisClient> {
    const { name, sentinels } = group;
    const app = await library.connect({ name, sentinels });
    clients.push(app);
    return app.client;
  }

  async function startProcess(waitReplicas = 0): Promise<Locks> {
    const store = new RedisStore({ client: await connect(), waitReplicas });
    const leaseMs = Number(process.env.LEASE_MS ?? 3_000);
    const locks = createLocks({ store, leaseMs, pollMs: 200, waitMs: 30_000 });
    processes.push(locks);
    return locks;
  }

  /** From now on no replica hears of what is written. */
  async function cutReplicas(primary: RedisServer): Promise<void> {
    await group.call(primary, 'ACL', 'SETUSER', 'default', '-psync', '-sync');
    await group.call(primary, 'CLIENT', 'KILL', 'TYPE', 'replica');
    await until(async () => String(await group.call(primary, 'INFO', 'replication')).includes('connected_slaves:0'));
  }

  it('[sentinel-01] A hold that the new primary does not know is lost, by signal, event and run; waiters queue anew, and fences rise', async () => {
    const [one, two] = [await startProcess(), await startProcess()];
    const primary = await group.primary();
    const before = await runInTrace(() => getLock('k').run(({ fence }) => fence), { locks: two });
    await cutReplicas(primary);
    const events: unknown[] = [];
    one.on('lost', (event) => events.push(event));
    let hold: Hold | undefined;
    const told = runInTrace(
      () =>
        getLock('k').run(async (held) => {
          hold = held;
          await once(held.signal, 'abort');
        }),
      { locks: one },
    ).catch((error: unknown) => error);
    await until(() => hold !== undefined);
    const waits = new Promise((resolve) => two.on('waiting', resolve));
    let begunAt: number | undefined;
    const begin = ({ fence }: Hold): number => {
      if (hold!.isHeld()) begunAt = performance.now();
      return fence;
    };
    const second = runInTrace(() => getLock('k').run(begin), { locks: two });
    await waits;
    await primary.kill();
    await group.failedOver(primary);
    expect(await told).toMatchObject({ code: 'ERR_LOCK_LOST', fence: hold!.fence });
    const toldAt = performance.now();
    expect(hold!.isHeld()).toBe(false);
    expect(hold!.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST' });
    expect(events).toMatchObject([{ key: 'k', error: { code: 'ERR_LOCK_LOST' } }]);
    expect(hold!.fence).toBeGreaterThan(before);
    expect(await second).toBeGreaterThan(before);
    say(`a hold that was lost: two owners for ${begunAt === undefined ? 0 : Math.round(toldAt - begunAt)} ms`);
  });

  // For each driver, one failover, which it has to follow.
  if (!sentinelLibrariesForFaults.includes(library)) return;

  it.each([0, 1])(
    'In a failover under load (`waitReplicas: %i`), fences never fall, errors are typed, and the queues go on',
    async (waitReplicas) => {
      const [one, two] = [await startProcess(waitReplicas), await startProcess(waitReplicas)];
      const primary = await group.primary();
      const rush = new Rush([one, two], ['a', 'b', 'c'], 3);
      let report: Awaited<ReturnType<Rush['end']>>;
      try {
        await rush.more(50);
        await primary.kill();
        await group.failedOver(primary);
        await rush.more(50);
      } finally {
        report = await rush.end();
      }
      say(`waitReplicas ${waitReplicas}: ${JSON.stringify(report)}`);
      expect(report).toMatchObject({ fallenFences: 0 });
      const typed = ['ERR_LOCK_STORE', 'ERR_LOCK_LOST', 'ERR_LOCK_TIMEOUT'];
      expect(Object.keys(report.errors).filter((code) => !typed.includes(code))).toEqual([]);
      // Both replicas lived, and the one that had more became the primary: it had all that one had confirmed.
      if (waitReplicas > 0) expect(report.doubles).toBe(0);
    },
  );

  it('An old primary that is cut off refuses if it needs a replica to write, and the new one grants', async () => {
    const primary = await group.primary();
    await group.call(primary, 'CONFIG', 'SET', 'min-replicas-to-write', '1');
    await group.call(primary, 'CONFIG', 'SET', 'min-replicas-max-lag', '1');
    // Neither replicas nor Sentinels have the password, and those who are connected are sent away.
    await group.call(primary, 'CONFIG', 'SET', 'requirepass', 'secret');
    await group.call(primary, 'CLIENT', 'KILL', 'TYPE', 'replica');
    for (const line of String(await group.call(primary, 'CLIENT', 'LIST')).split('\n')) {
      const [, id] = /^id=(\d+) .* name=sentinel-/.exec(line) ?? [];
      if (id !== undefined) await group.call(primary, 'CLIENT', 'KILL', 'ID', id);
    }
    const left = new Redis(primary.port, { password: 'secret' });
    clients.push({ close: async () => left.disconnect() });
    const behind = new StoreStage();
    behind.store = new RedisStore({ client: left });
    const refusal = { code: 'ERR_LOCK_STORE', cause: { message: expect.stringMatching(/^NOREPLICAS /) } };
    const error = (): Promise<unknown> =>
      behind
        .deafProcess()
        .line(undefined, { id: 'another' })
        .ask()
        .catch((e: unknown) => e);
    await until(async () => /NOREPLICAS/.test(String(((await error()) as Error).cause)));
    await group.failedOver(primary);
    const line = behind.deafProcess().line();
    await expect(line.ask()).rejects.toMatchObject(refusal);
    await expect(line.copy.release(longMs)).rejects.toMatchObject(refusal);
    const ahead = new StoreStage();
    ahead.store = new RedisStore({ client: await connect() });
    expect((await ahead.deafProcess().line().ask()).status).toBe('granted');
    expect((await behind.inspect()).holds).toEqual([]);
  });
});
