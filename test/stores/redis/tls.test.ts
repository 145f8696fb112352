import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { createCertificate } from '../../support/http/certificate.ts';
import { freePort } from '../../support/processes/free-port.ts';
import { ioredisVersions } from '../../support/redis/ioredis.ts';
import { type RedisServer, startRedis } from '../../support/redis/server.ts';
import { useEverything, uses } from '../../support/stores/everything.ts';
import { until } from '../../support/until.ts';

/** Servers that want a certificate from their clients, too: a connection without the client's own options is refused. */
describe('RedisStore over TLS', () => {
  const { cert, key } = createCertificate();
  const tls = { ca: cert, cert, key };
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'reenlock-tls-'));
    await writeFile(join(folder, 'cert.pem'), cert);
    await writeFile(join(folder, 'key.pem'), key);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  async function start(...args: string[]): Promise<{ server: RedisServer; port: number }> {
    const port = await freePort();
    const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile];
    return { server: await startRedis({ args: ['--tls-port', String(port), ...files, ...args] }), port };
  }

  describe.each(ioredisVersions)('with %s', (_, { Redis: Client }) => {
    let servers: RedisServer[] = [];
    let port: number;
    let client: Redis;
    let admin: Redis;
    let stage: StoreStage;
    beforeAll(async () => {
      const primary = await start('--repl-diskless-sync-delay', '0');
      const replica = await startRedis({ args: ['--replicaof', `127.0.0.1 ${primary.server.port}`] });
      servers = [primary.server, replica];
      port = primary.port;
      admin = new Redis(primary.server.port);
      await until(async () => /^slave0:.*state=online/m.test(await admin.info('replication')));
    });
    afterAll(async () => {
      admin.disconnect();
      await Promise.all(servers.map((server) => server.stop()));
    });
    beforeEach(async () => {
      await admin.flushall();
      stage = new StoreStage();
      client = new Client(port, '127.0.0.1', { tls, maxRetriesPerRequest: 0 });
      await client.ping();
    });
    afterEach(() => client.disconnect());

    it.each(Object.keys(uses))('A %s works over TLS, and its own connections have the options, too', async (kind) => {
      const duplicate = jest.spyOn(client, 'duplicate');
      await uses[kind]!(stage, client);
      const opened = duplicate.mock.results.map(({ value }) => (value as Redis).options.tls);
      jest.restoreAllMocks();
      expect(opened).toEqual(opened.map(() => tls));
      expect(opened.length).toBeGreaterThan(0);
    });
  });

  describe('A Cluster over TLS', () => {
    let server: RedisServer;
    let port: number;
    beforeAll(async () => {
      const args = ['--cluster-enabled', 'yes', '--tls-cluster', 'yes', '--cluster-announce-ip', '127.0.0.1'];
      ({ server, port } = await start(...args));
      const admin = new Redis(server.port);
      await admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
      await until(async () => /^cluster_state:ok\r$/m.test(String(await admin.cluster('INFO'))));
      admin.disconnect();
    });
    afterAll(() => server.stop());

    it.each(ioredisVersions)(
      'A Cluster serves a RedisStore, whose own connection has the options of its servers (%s)',
      async (_, { Cluster }) => {
        const client = new Cluster([{ host: '127.0.0.1', port }], { redisOptions: { tls } });
        const stage = new StoreStage();
        stage.store = new RedisStore({ client });
        await useEverything(stage);
        expect(client.nodes().map(({ options }) => options.port)).toEqual([port]);
        client.disconnect();
      },
    );
  });
});
