import { inspect } from 'node:util';
import type { Cluster, Redis } from 'ioredis';
import type { RedisClient } from 'reenlock/redis';
import { RedisStore } from '../../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../../src/testing/contract/harness.ts';
import { key } from '../../../../src/testing/contract/stage.ts';
import { clusterLibraries, clusterLibrariesForFaults } from '../../../support/redis/cluster-clients.ts';
import { type ClusterOptions, useCluster } from '../../../support/redis/cluster-stage.ts';
import type { RedisServer } from '../../../support/redis/server.ts';
import { until } from '../../../support/until.ts';

jest.setTimeout(120_000);

describe('A cluster’s store that waits for a replica', () => {
  const stage = useCluster();
  const record = `reenlock:{${key}}:lock`;
  let client: Cluster | undefined;
  let end: (() => Promise<void>) | undefined;

  async function useStore(of: RedisClient): Promise<void> {
    stage.store = new RedisStore({ client: of, waitReplicas: 1 });
    // The last subscription closes what calls have opened.
    end = await stage.store.subscribe('the-suite', () => {});
  }

  /** With a client of ioredis. */
  async function use(options: ClusterOptions = {}): Promise<Cluster> {
    client = await stage.connect(options);
    await useStore(client);
    return client;
  }
  afterEach(async () => {
    await end?.();
    await stage.end();
    client?.disconnect();
    client = undefined;
  });

  async function copyOf(name: string): Promise<Readonly<Record<string, string>>> {
    const { replica } = await stage.cluster.serversOf(name);
    await stage.cluster.call(replica, 'READONLY');
    const parts = (await stage.cluster.call(replica, 'HGETALL', name)) as string[];
    return Object.fromEntries(parts.flatMap((field, i) => (i % 2 === 0 ? [[field, String(parts[i + 1])]] : [])));
  }

  const unconfirmed = (operation: string) => ({
    code: 'ERR_LOCK_STORE',
    outcome: 'unknown',
    message: expect.stringContaining(`to confirm ${operation}, but 0 did`),
  });

  const prefixed = clusterLibraries.flatMap((library) =>
    (library.hasKeyPrefix ? ['', 'app:', '{app}:'] : ['']).map(
      (keyPrefix) => [library.name, keyPrefix, library] as const,
    ),
  );

  it.each(prefixed)(
    'With %s the replica of each shard has what the store has granted and renewed (%j)',
    async (_, keyPrefix, library) => {
      await useStore(await stage.open(library, { keyPrefix }));
      for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) {
        const name = `${keyPrefix}reenlock:{${id}}:lock`;
        const line = stage.deafProcess().line(undefined, { id });
        const { fence } = await line.hold();
        expect(await copyOf(name)).toMatchObject({ fence: String(fence), hold: line.holdId });
        expect(await line.renew(fence, 2 * longMs)).toMatchObject({ status: 'renewed', endMs: expect.any(Number) });
        expect(Number((await copyOf(name)).ends)).toBeGreaterThan(fence / 1000 + longMs);
      }
    },
  );

  it.each(clusterLibrariesForFaults)(
    'With $name the store grants and renews nothing of a shard whose replica does not respond, and goes on in the others',
    async (library) => {
      await useStore(await stage.open(library));
      const line = stage.deafProcess().line();
      const { fence } = await line.hold();
      const { primary, replica } = await stage.cluster.serversOf(record);
      const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
      const servers = await Promise.all(ids.map(async (id) => (await stage.cluster.serversOf(`{${id}}`)).primary.port));
      const inShard = (isIn: boolean) => ids[servers.findIndex((port) => (port === primary.port) === isIn)]!;
      replica.pause();
      const other = stage.deafProcess().line(undefined, { id: inShard(false) });
      expect((await other.ask()).status).toBe('granted');
      const failures = [
        line.renew(fence),
        stage
          .deafProcess()
          .line(undefined, { id: inShard(true) })
          .ask(),
      ];
      const [renewed, acquired] = await Promise.all(failures.map((call) => call.catch((error: unknown) => error)));
      replica.resume();
      expect(renewed).toMatchObject(unconfirmed('renew'));
      expect(acquired).toMatchObject(unconfirmed('acquire'));
      await stage.cluster.settled();
      expect((await line.renew(fence)).status).toBe('renewed');
    },
  );

  it.each(clusterLibraries)('With $name the store follows a slot to another server, and back', async (library) => {
    await useStore(await stage.open(library));
    const line = stage.deafProcess().line();
    const { fence } = await line.hold();
    for (let move = 0; move < 2; move++) {
      await stage.cluster.moveSlot(record, await stage.elsewhere(record));
      expect((await line.renew(fence)).status).toBe('renewed');
      expect(await copyOf(record)).toMatchObject({ fence: String(fence) });
    }
    await stage.cluster.moveSlot(record, await stage.elsewhere(record));
    await line.release();
    const next = await stage.deafProcess().line().hold();
    expect(await copyOf(record)).toMatchObject({ fence: String(next.fence) });
  });

  it('The store tries again while a slot is on its way, and grants once when it is there', async () => {
    await use();
    const line = stage.deafProcess().line();
    const refusals = async (server: RedisServer): Promise<number> =>
      Number(/^errorstat_ASK:count=(\d+)/m.exec(await stage.info(server, 'errorstats'))?.[1] ?? 0);
    const { primary } = await stage.cluster.serversOf(record);
    const before = await refusals(primary);
    let asked: ReturnType<typeof line.ask> | undefined;
    await stage.cluster.moveSlot(record, await stage.elsewhere(record), async () => {
      asked = line.ask();
      await until(async () => (await refusals(primary)) > before);
    });
    const reply = await asked;
    expect([reply?.status, reply?.mayArriveLater]).toEqual(['granted', false]);
    expect((await stage.order()).holds).toEqual([line.holdId]);
  });

  it('The store gives up a call after a while if its slot does not arrive, and reports that nothing was done', async () => {
    await use();
    const line = stage.deafProcess().line();
    await stage.cluster.moveSlot(record, await stage.elsewhere(record), async () => {
      await expect(line.ask()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied' });
    });
    expect((await stage.order()).holds).toEqual([]);
    expect((await line.ask()).mayArriveLater).toBe(false);
  });

  it('The store remembers a call without a reply, even if it was refused before', async () => {
    const client = await use();
    const failures = [
      Object.assign(new Error('MOVED 1 127.0.0.1:1'), { name: 'ReplyError' }),
      new Error('Connection is closed.'),
    ];
    for (const node of client.nodes('master')) {
      const duplicate = node.duplicate.bind(node);
      jest.spyOn(node, 'duplicate').mockImplementation((options) => {
        return Object.assign(duplicate(options), { call: () => Promise.reject(failures.shift()) });
      });
    }
    const line = stage.deafProcess().line();
    await expect(line.ask()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    expect(failures).toEqual([]);
    jest.restoreAllMocks();
    expect((await line.ask()).mayArriveLater).toBe(true);
  });

  it('The store looks up the server of the slot again if it gets no connection to the former one', async () => {
    const client = await use();
    const refused: Redis[] = [];
    for (const node of client.nodes('master')) {
      const duplicate = node.duplicate.bind(node);
      jest.spyOn(node, 'duplicate').mockImplementationOnce((options) => {
        const connection = duplicate({ ...options, port: 1 });
        refused.push(connection);
        return connection;
      });
    }
    const line = stage.deafProcess().line();
    const reply = await line.ask();
    expect([reply.status, reply.mayArriveLater]).toEqual(['granted', false]);
    expect(refused).toHaveLength(1);
  });

  it.each(clusterLibrariesForFaults)(
    'With $name the store goes on with the replica that took over in agreement',
    async (library) => {
      await useStore(await stage.open(library));
      const line = stage.deafProcess().line();
      const { fence } = await line.hold();
      await stage.cluster.failOver((await stage.cluster.serversOf(record)).replica);
      expect((await line.renew(fence)).status).toBe('renewed');
      expect(await copyOf(record)).toMatchObject({ fence: String(fence) });
    },
  );

  it.each(['master', 'slave'] as const)(
    'The store calls the replica that took over from a dead server, and grants when there is another (reads: %s)',
    async (scaleReads) => {
      await use({ maxRedirections: 100, scaleReads });
      const line = stage.deafProcess().line();
      const { fence } = await line.hold();
      const { primary, replica } = await stage.cluster.serversOf(record);
      await stage.cluster.electable(replica);
      await primary.kill();
      await until(() => stage.isPrimary(replica));
      const failure = await until(
        () => line.renew(fence).catch((error: unknown) => error),
        (reply) => /to confirm renew, but 0 did/.test(String(reply)),
        async (reply) => `${inspect(reply)}\n${await stage.cluster.state()}`,
      );
      expect(failure).toMatchObject(unconfirmed('renew'));
      await primary.restart();
      await stage.cluster.settled();
      // On a busy machine a replica may be late at first.
      expect(await until(() => line.renew(fence).catch(() => undefined))).toMatchObject({ status: 'renewed' });
      expect((await line.release()).status).toBe('released');
    },
  );
});
