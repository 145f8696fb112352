import { Redis } from 'ioredis';
import type { StoreMessage } from '../../../src/core/model/store.ts';
import { RedisChannel } from '../../../src/stores/redis/channel.ts';
import { driverOf } from '../../../src/stores/redis/drivers/driver-of.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { type AppClient, clientLibraries } from '../../support/redis/clients.ts';
import { type RedisServer, startRedis } from '../../support/redis/server.ts';
import { until } from '../../support/until.ts';

describe.each(clientLibraries)('The channel of RedisStore and the server of the calls, with $name', ({ connect }) => {
  let servers: RedisServer[] = [];
  let admins: Redis[] = [];
  let name: TcpProxy;
  let app: AppClient;
  let clock: ManualClock;
  let channel: RedisChannel;
  let messages: StoreMessage[] = [];
  let end: () => unknown = () => undefined;

  /** Two servers, and one name that leads to the first. */
  beforeEach(async () => {
    const args = ['--repl-diskless-sync-delay', '0'];
    servers = await Promise.all([startRedis({ args }), startRedis({ args })]);
    admins = servers.map(({ port }) => new Redis(port));
    name = await TcpProxy.start(servers[0]!.port);
    await openApp();
  });
  afterEach(async () => {
    await end();
    await app.close();
    for (const admin of admins) admin.disconnect();
    await name.stop();
    await Promise.all(servers.map((server) => server.stop()));
  });

  async function openApp(user: object = {}): Promise<void> {
    app = connect({ port: name.port, ...user });
    await app.ready();
    clock = new ManualClock();
    channel = new RedisChannel(driverOf(app.client), 'grants:', clock);
    messages = [];
  }

  async function subscribe(): Promise<void> {
    end = await channel.subscribe('process', (message) => messages.push(message));
    await until(() => kinds().includes('resubscribed'));
    messages.length = 0;
  }

  const kinds = (): string[] => messages.map(({ kind }) => kind);

  /** How many listeners a server counts. */
  async function listeners(server: 0 | 1): Promise<number> {
    const [, count] = (await admins[server]!.pubsub('NUMSUB', 'grants:process')) as [string, number];
    return Number(count);
  }

  /** How many times the servers were asked who listens, but for `listeners`. */
  async function asked(server: 0 | 1): Promise<number> {
    const [, calls] = /cmdstat_pubsub\|numsub:calls=(\d+)/.exec(await admins[server]!.info('commandstats')) ?? [];
    return Number(calls ?? 0);
  }

  /** Lets a ping be due. It is answered before the end of this: otherwise, the next five seconds would count as no answer. */
  async function ping(): Promise<void> {
    await clock.advance(5_000);
    await (await channel.subscribe('another', () => {}))();
  }

  /** The client connects anew. The connection for subscriptions does not. */
  async function leadCallsTo(server: 0 | 1): Promise<void> {
    name.lead(servers[server]!.port);
    const driver = driverOf(app.client);
    const before = driver.connectionEpoch();
    name.cut('commands');
    await until(() => driver.connectionEpoch() !== before && driver.link.isUp);
  }

  it('The channel follows the calls to the new primary after a planned switch, which leaves its connection open', async () => {
    await admins[1]!.replicaof('127.0.0.1', servers[0]!.port);
    await until(async () => (await admins[0]!.info('replication')).includes('state=online'));
    await subscribe();
    await admins[0]!.call('FAILOVER', 'TO', '127.0.0.1', String(servers[1]!.port));
    await until(async () => (await admins[1]!.info('replication')).includes('role:master'));
    await leadCallsTo(1);
    expect(await listeners(0)).toBe(1);

    await clock.advance(5_000);
    await until(() => kinds().includes('resubscribed'));
    expect([await listeners(0), await listeners(1)]).toEqual([0, 1]);
    await admins[1]!.publish('grants:process', 'lost hold-1');
    await until(() => kinds().includes('lost'));
    expect(kinds()).toEqual(['resubscribed', 'lost']);
  });

  it('The channel asks once for each connection of the client while it finds both on one server', async () => {
    await subscribe();
    for (const round of [1, 2]) {
      for (const _ of [1, 2, 3]) {
        await ping();
        await until(async () => (await asked(0)) === round);
      }
      await leadCallsTo(0);
    }
    expect(messages).toEqual([]);
  });

  it('The channel connects again ever more rarely while the subscription never gets to the server of the calls, and warns once', async () => {
    await subscribe();
    await leadCallsTo(1);
    name.lead(servers[0]!.port);
    let connections = 0;
    for (let check = 1; check <= 24; check += 1) {
      await clock.advance(5_000);
      await until(async () => (await asked(1)) === check);
      // Answered after the question.
      await driverOf(app.client).send(['ping']);
      if ([1, 2, 4, 8, 12, 16, 24].includes(check)) connections += 1;
      await until(() => kinds().filter((kind) => kind === 'resubscribed').length === connections);
    }
    const [again, warning] = ['resubscribed', 'warning'];
    expect(kinds()).toEqual([again, again, warning, again, again, again, again, again]);
    expect(messages).toContainEqual(expect.objectContaining({ code: 'LOCK_REDIS_APART' }));
  });

  it('The channel asks no server again that refuses to name its listeners', async () => {
    await app.close();
    await admins[0]!.call('ACL', 'SETUSER', 'mute', 'on', '>secret', '~*', '&*', '+@all', '-pubsub');
    await openApp({ username: 'mute', password: 'secret' });
    await subscribe();
    const refusals = async () => (await admins[0]!.call('ACL', 'LOG')) as unknown[][];
    for (const _ of [1, 2, 3]) {
      await ping();
      // The first question comes in some later turn.
      await until(async () => (await refusals()).length > 0);
      // What the channel has sent is answered before this is.
      await driverOf(app.client).send(['ping']);
    }
    const [entry] = await refusals();
    expect(entry).toEqual(expect.arrayContaining(['pubsub|numsub', 'count', 1]));
    expect(messages).toEqual([]);
  });
});
