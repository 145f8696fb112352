import { setImmediate as turn } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { LockStoreError } from '../../../src/core/model/errors/failures.ts';
import type { StoreMessage } from '../../../src/core/model/store.ts';
import { driverOf, type RedisClient } from '../../../src/stores/redis/drivers/driver-of.ts';
import { IoredisDriver } from '../../../src/stores/redis/drivers/ioredis/single-driver.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { ServerUptime } from '../../../src/stores/redis/server-info.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { freePort } from '../../support/processes/free-port.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';

/** A client whose server has been up for as long as a test says, and replies as late as the test says. */
class Server {
  readonly clock = new ManualClock();
  stream: object | undefined = {};
  seconds = 100;
  lateMs = 0;
  asked = 0;
  /** What happens while a reply is on its way. */
  meanwhile: () => void = () => {};

  readonly options = {};
  readonly status = 'ready';

  async call(): Promise<string> {
    this.asked += 1;
    const answer = `# Server\r\nuptime_in_seconds:${this.seconds}\r\n`;
    this.clock.skip(this.lateMs);
    this.meanwhile();
    return answer;
  }
}

describe('ServerUptime', () => {
  let server: Server;
  let uptime: ServerUptime;

  beforeEach(() => {
    server = new Server();
    uptime = new ServerUptime(new IoredisDriver(server as unknown as Redis), server.clock);
  });

  it('The uptime of a server is never reported as longer than it is, however long the reply took', async () => {
    server.lateMs = 5_000;
    // Start and end are rounded to seconds: it may be 99.
    expect(await uptime.uptimeMs()).toBe(99_000);
    server.clock.skip(1_000);
    expect(await uptime.uptimeMs()).toBe(100_000);
    expect(server.asked).toBe(1);
  });

  it.each<[string, object]>([
    [
      'is that of a cluster, which has no single uptime',
      { isCluster: true, status: 'ready', call: async () => 'uptime_in_seconds:100' },
    ],
    ['gets no uptime in the reply', { isCluster: false, status: 'ready', call: async () => '# Server' }],
    ['fails', { isCluster: false, status: 'ready', call: () => Promise.reject(new Error('Connection is closed.')) }],
  ])('The uptime is a LockStoreError if the client %s', async (_, client) => {
    await expect(new ServerUptime(driverOf(client as RedisClient), server.clock).uptimeMs()).rejects.toBeInstanceOf(
      LockStoreError,
    );
  });

  it('The uptime counts from the first reply if the server’s clock was set back behind its start', async () => {
    server.seconds = -86_400;
    expect(await uptime.uptimeMs()).toBe(0);
    server.clock.skip(5_000);
    expect(await uptime.uptimeMs()).toBe(5_000);
  });

  it('The uptime continues by the monotonic clock', async () => {
    await uptime.uptimeMs();
    server.clock.jumpWall(3_600_000);
    expect(await uptime.uptimeMs()).toBe(99_000);
  });

  it.each<[string, () => void, () => void]>([
    ['the connection is a new one', () => {}, () => (server.stream = {})],
    [
      'the connection changed before the reply arrived',
      () => (server.meanwhile = () => (server.stream = {})),
      () => {},
    ],
    ['there was no connection yet', () => (server.stream = undefined), () => {}],
  ])('The server, which may have restarted, is asked again if %s', async (_, before, after) => {
    before();
    await uptime.uptimeMs();
    after();
    server.meanwhile = () => {};
    server.seconds = 3;
    expect(await uptime.uptimeMs()).toBe(2_000);
  });
});

describe('warnings', () => {
  const stage = useRedis();

  async function warnings(client = stage.client): Promise<StoreMessage[]> {
    const messages: StoreMessage[] = [];
    const store = new RedisStore({ client });
    const end = await store.subscribe('a-process', (message) => messages.push(message));
    // Sent after the store's INFO on the same connection, so answered after it.
    await client.ping();
    // Replies in one packet are delivered in one turn.
    await turn();
    await end();
    return messages.filter(({ kind }) => kind === 'warning');
  }

  it.each(['allkeys-lru', 'volatile-ttl', 'allkeys-random'])(
    'A process that subscribes is warned of a server that may evict locks (%s)',
    async (policy) => {
      await stage.client.config('SET', 'maxmemory-policy', policy);
      const message = expect.stringContaining(`\`${policy}\``);
      expect(await warnings()).toEqual([{ kind: 'warning', code: 'LOCK_EVICTION', message }]);
      await stage.client.config('SET', 'maxmemory-policy', 'noeviction');
    },
  );

  async function warningsOf(version: string): Promise<StoreMessage[]> {
    const client = stage.connect();
    // The client also sends INFO when it connects.
    await client.ping();
    const ask = client.info.bind(client);
    client.call = (() =>
      ask().then((info) => info.replace(/^(redis_version:).*\r$/m, `$1${version}\r`))) as Redis['call'];
    return warnings(client);
  }

  it.each(['5.0.7', '6.0.16', '6.1.240'])(
    'A process that subscribes is warned of a server of version %s',
    async (version) => {
      const message = expect.stringContaining(`Redis ${version}:`);
      expect(await warningsOf(version)).toEqual([{ kind: 'warning', code: 'LOCK_REDIS_OLD', message }]);
    },
  );

  it.each(['6.2.0', '7.0.15', '10.0.1'])(
    'A server of version %s that evicts nothing causes no warning',
    async (version) => {
      expect(await warningsOf(version)).toEqual([]);
    },
  );

  it('A server that does not reply is not asked for INFO, which its client would queue with every try', async () => {
    const client = stage.connect({ port: await freePort(), maxRetriesPerRequest: null });
    const ask = jest.spyOn(client, 'call');
    const subscribed = new RedisStore({ client }).subscribe('a-process', () => {});
    await expect(subscribed).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
    expect(ask).not.toHaveBeenCalled();
  });
});
