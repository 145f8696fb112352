import { createLocks, type LockStoreError, type Locks } from 'reenlock';
import type { RedisClient } from 'reenlock/redis';
import { RedisStore } from '../../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../../src/testing/contract/harness.ts';
import { key } from '../../../../src/testing/contract/stage.ts';
import {
  type ClusterClientOptions,
  type ClusterLibrary,
  clusterLibrariesForFaults,
  newestClusterLibraries,
} from '../../../support/redis/cluster-clients.ts';
import { type ClusterStage, useCluster } from '../../../support/redis/cluster-stage.ts';
import { Rush } from '../../../support/redis/rush.ts';
import type { RedisServer } from '../../../support/redis/server.ts';
import { until } from '../../../support/until.ts';

jest.setTimeout(120_000);

const record = `reenlock:{${key}}:lock`;

describe('Faults of a cluster', () => {
  const stage = useCluster();
  describe.each(newestClusterLibraries)('with $name', (library) => faultsWith(library, stage));
});

function faultsWith(library: ClusterLibrary, stage: ClusterStage): void {
  const connect = (options?: Partial<ClusterClientOptions>): Promise<RedisClient> => stage.open(library, options);

  // A client opens and closes connections as the cluster changes: each test has its own, and closes it. The stage's is not
  // needed.
  beforeAll(() => stage.client.disconnect());
  beforeEach(async () => {
    stage.store = new RedisStore({ client: await connect() });
  });

  it('Calls fail with a LockStoreError while no server has the slot, and the queue goes on with the new one', async () => {
    stage.store = new RedisStore({ client: await connect({ maxRedirections: 3 }) });
    const [one, two] = [await stage.process(), await stage.process()];
    const holder = one.line();
    const { fence } = await holder.hold();
    const waiter = await two.line().wait();
    const { primary, replica } = await stage.cluster.serversOf(record);
    await stage.synced(primary);
    await stage.cluster.electable(replica);
    await primary.kill();
    await expect(one.line(undefined, { id: key }).ask()).rejects.toMatchObject({
      code: 'ERR_LOCK_STORE',
      outcome: library.name.startsWith('ioredis') ? 'unknown' : expect.stringMatching(/^(unknown|not-applied)$/),
    });
    await until(() => stage.isPrimary(replica));
    await until(() =>
      holder.renew(fence).then(
        ({ status }) => status === 'renewed',
        () => false,
      ),
    );
    expect(await stage.order()).toEqual({ holds: [holder.holdId], waiters: [waiter.holdId] });
    await holder.release();
    expect(await waiter.ask()).toMatchObject({ status: 'granted' });
    await primary.restart();
    await stage.cluster.settled();
  });

  describe('whose slots move', () => {
    it('A lock whose two keys are on two servers gets replies when they are on one, and nothing is done by half', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = one.line();
      const { fence } = await holder.hold();
      const waiter = await two.line().wait();
      const to = await stage.elsewhere(record);
      let isSettled = false;
      let released: ReturnType<typeof holder.release> | undefined;
      const renewed: unknown[] = [];
      await stage.cluster.moveSlot(record, to, async () => {
        const { primary } = await stage.cluster.serversOf(record);
        for (const server of [primary, to]) await stage.cluster.call(server, 'CONFIG', 'RESETSTAT');
        await stage.cluster.call(primary, 'MIGRATE', '127.0.0.1', to.port, record, 0, 5_000);
        released = holder.renew(fence).then((reply) => {
          renewed.push(reply);
          return holder.release();
        });
        void released.then(() => {
          isSettled = true;
        });
        const isRefused = async (server: RedisServer): Promise<boolean> =>
          /^errorstat_TRYAGAIN/m.test(await stage.info(server, 'errorstats'));
        await until(async () => (await isRefused(primary)) || isRefused(to));
        expect(isSettled).toBe(false);
      });
      expect((await released)?.status).toBe('released');
      expect(renewed).toMatchObject([{ status: 'renewed' }]);
      expect((await two.granted(waiter)).fence).toBeGreaterThan(fence);
    });

    it('A lock that is between two servers for longer than the client tries is a LockStoreError that reports that', async () => {
      const store = new RedisStore({ client: await connect({ maxRedirections: 2 }) });
      const line = stage.deafProcess().line();
      await line.hold();
      const request = { ...line.request, holdId: 'another' };
      const terms = { leaseMs: longMs, queue: true, maxWaiters: 10, livenessMs: longMs };
      await stage.cluster.moveSlot(record, await stage.elsewhere(record), async () => {
        await expect(store.acquire(request, terms)).rejects.toMatchObject({
          code: 'ERR_LOCK_STORE',
          outcome: 'not-applied',
          message: expect.stringMatching(/replied (TRYAGAIN|ASK|MOVED) to acquire: its slot is between two servers/),
        });
      });
      expect(await store.acquire(request, terms)).toMatchObject({ status: 'granted' });
    });

    // By now each driver has followed every kind of change. The rest takes long.
    if (!clusterLibrariesForFaults.includes(library)) return;

    it.each([
      { who: 'writers', readers: 0 },
      // The keys of several holds are made and removed all the time, also while the slot is on its way.
      { who: 'readers and writers', readers: 4 },
    ])(
      'No second owner is let in, no waiter waits for ever, and nothing fails, while slots move to and fro under $who',
      async ({ readers }) => {
        await underLoad(
          connect,
          ['a', 'b', 'c'],
          async (rush) => {
            for (let round = 0; round < 4; round++) {
              for (const id of ['a', 'b', 'c']) {
                await stage.cluster.moveSlot(`{${id}}`, await stage.elsewhere(`{${id}}`), () =>
                  rush.more(3, 'a' === id ? ['b', 'c'] : ['a']),
                );
              }
              await rush.more(20);
            }
          },
          { errors: {} },
          // None in time: whatever gets lost stays lost.
          { pollMs: 60_000, readers },
        );
      },
    );
  });

  if (!clusterLibrariesForFaults.includes(library)) return;

  describe('whose primaries change', () => {
    it('No second owner is let in, and nothing fails, while replicas take over in agreement', async () => {
      await underLoad(
        connect,
        ['a', 'b', 'c'],
        async (rush) => {
          for (const id of ['a', 'b', 'c', 'a']) {
            await stage.cluster.failOver((await stage.cluster.serversOf(`{${id}}`)).replica);
            await rush.more(20);
          }
        },
        { errors: {} },
      );
    });

    it('Calls on a server that has lost the others are refused, and applied nothing', async () => {
      const store = new RedisStore({ client: await connect({ maxRedirections: 3 }) });
      const { primary } = await stage.cluster.serversOf(record);
      const gone: RedisServer[] = [];
      for (const server of stage.cluster.servers) {
        if (server.port !== primary.port && (await stage.isPrimary(server))) gone.push(server);
      }
      await Promise.all(gone.map((server) => server.kill()));
      const error = async (): Promise<unknown> => store.forceRelease(key, 1).catch((reason: unknown) => reason);
      // While the client still drops connections, it can't be told whether a copy of the call was applied before.
      await until(async () => {
        const reason = await error();
        return /replied CLUSTERDOWN/.test(String(reason)) && (reason as LockStoreError).outcome === 'not-applied';
      });
      await Promise.all(gone.map((server) => server.restart()));
      await stage.cluster.settled();
      await until(async () => (await error()) === false);
    });
  });
}

async function underLoad(
  connect: () => Promise<RedisClient>,
  ids: readonly string[],
  trouble: (rush: Rush) => Promise<void>,
  expected: object,
  { pollMs = 100, readers = 0 } = {},
): Promise<void> {
  const processes: Locks[] = [];
  for (let i = 0; i < 2; i++) {
    const client = await connect();
    processes.push(createLocks({ store: new RedisStore({ client }), pollMs, waitMs: 20_000, storeTimeoutMs: 5_000 }));
  }
  const rush = new Rush(processes, ids, 3, readers);
  try {
    await rush.more(20);
    await trouble(rush);
    expect(await rush.end()).toMatchObject({ doubles: 0, fallenFences: 0, ...expected });
  } finally {
    await rush.end();
    for (const locks of processes) await locks.close();
  }
}
