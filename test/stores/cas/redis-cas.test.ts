import { once } from 'node:events';
import type { Redis } from 'ioredis';
import { createLocks, getLock, runInTrace } from 'reenlock';
import { CasStore, RedisCas } from 'reenlock/redis';
import { LockConfigError } from '../../../src/core/model/errors/mistakes.ts';
import { ConnectionPool } from '../../../src/stores/redis/connection-pool.ts';
import { driverOf } from '../../../src/stores/redis/drivers/driver-of.ts';
import { readDocument } from '../../docs/markdown.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { until } from '../../support/until.ts';

const ttlMs = 60_000;

describe('RedisCas', () => {
  const stage = useRedis();
  let client: Redis;
  let adapter: RedisCas;
  beforeEach(async () => {
    client = stage.connect();
    await client.ping();
    adapter = new RedisCas({ client });
  });
  afterEach(() => {
    adapter.close();
  });

  /** The adapter's transactions stop between the comparison and the write, and `meanwhile` happens. */
  function interrupt(meanwhile: (connection: Redis) => Promise<unknown>): void {
    const duplicate = client.duplicate.bind(client);
    jest.spyOn(client, 'duplicate').mockImplementation((options) => {
      const connection = duplicate(options);
      const pipeline = connection.pipeline.bind(connection);
      connection.pipeline = () => {
        const commands = pipeline();
        const call = jest.spyOn(commands, 'call');
        const exec = commands.exec.bind(commands);
        commands.exec = async () => {
          if (call.mock.calls.some(([name]) => name === 'multi')) await meanwhile(connection);
          return exec();
        };
        return commands;
      };
      return connection;
    });
  }

  const connections = async () => (await stage.connections()).length;

  it.each([
    ['replace', 'other'],
    ['remove', 'other'],
    ['replace', 'one'],
  ] as const)('%s changes nothing if the text %j was written after the comparison', async (operation, written) => {
    await stage.client.set('k', 'one');
    interrupt(() => stage.client.set('k', written));
    const done = operation === 'replace' ? adapter.replace('k', 'one', 'two', ttlMs) : adapter.remove('k', 'one');
    expect(await done).toBe(false);
    expect(await stage.client.get('k')).toBe(written);
  });

  it('A text is kept for the time that was asked for with it', async () => {
    await adapter.create('k', 'one', 1_000_000);
    expect(await stage.client.pttl('k')).toBeGreaterThan(900_000);
    await adapter.replace('k', 'one', 'two', 5_000_000);
    expect(await stage.client.pttl('k')).toBeGreaterThan(4_900_000);
  });

  it('A write without a connection was not applied', async () => {
    await adapter.create('k', 'one', ttlMs);
    const away: Redis = Object.create(client, {
      duplicate: { value: (options: object) => client.duplicate({ ...options, port: 1 }) },
    });
    const lost = new RedisCas({ client: away });
    const notApplied = { code: 'ERR_LOCK_STORE', outcome: 'not-applied' };
    await expect(lost.replace('k', 'one', 'two', ttlMs)).rejects.toMatchObject(notApplied);
    await expect(lost.remove('k', 'one')).rejects.toMatchObject(notApplied);
  });

  it('A connection keeps the process alive while a write is on its way, and not while it is idle', async () => {
    /** Node's own word for it. */
    const isAwaited = ({ stream }: Redis) => (stream as unknown as { _handle: { hasRef(): boolean } })._handle.hasRef();
    const connections = new Set<Redis>();
    let wasAwaited = false;
    interrupt(async (connection) => {
      connections.add(connection);
      wasAwaited = isAwaited(connection);
    });
    await adapter.create('k', '0', ttlMs);
    for (const round of [1, 2]) {
      expect(await adapter.replace('k', `${round - 1}`, `${round}`, ttlMs)).toBe(true);
      expect([wasAwaited, ...Array.from(connections, isAwaited)]).toEqual([true, false]);
    }
  });

  it('RedisCas refuses a cluster’s client', () => {
    const cluster = Object.create(client, { isCluster: { value: true } });
    expect(() => new RedisCas({ client: cluster })).toThrow(LockConfigError);
    expect(() => new RedisCas({ client: cluster })).toThrow('got a Cluster');
  });

  it('`replace` fails if the server refuses the write inside the transaction', async () => {
    await stage.client.set('k', 'one');
    await expect(adapter.replace('k', 'one', 'two', -1)).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
    expect(await stage.client.get('k')).toBe('one');
  });

  it('`create` is not confused by a MULTI of the application on its client', async () => {
    await client.multi({ pipeline: false });
    const unknown = { code: 'ERR_LOCK_STORE', outcome: 'unknown' };
    await expect(adapter.create('k', 'one', ttlMs)).rejects.toMatchObject(unknown);
    await client.discard();
    expect(await stage.client.get('k')).toBeNull();
  });

  it('A transaction that loses its connection after the comparison is not sent on another one', async () => {
    await stage.client.set('k', 'one');
    interrupt(async (connection) => {
      await stage.client.set('k', 'other');
      const closed = once(connection, 'close');
      await stage.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await closed;
      // Whatever a connection does about that, it has done it then.
      await until(() => ['end', 'ready'].includes(connection.status));
    });
    await expect(adapter.replace('k', 'one', 'two', ttlMs)).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
    await client.ping();
    expect(await stage.client.get('k')).toBe('other');
    jest.restoreAllMocks();
    // The next one opens a connection of its own.
    expect(await adapter.replace('k', 'other', 'three', ttlMs)).toBe(true);
  });

  it('A read that the server refuses is an error, and not a key without a text', async () => {
    await stage.client.lpush('k', 'of another type');
    const reader = new RedisCas({ client: await stage.connectAs('writer', '-get') });
    await expect(reader.read('other')).rejects.toThrow('The lock store replied NOPERM to read');
    for (const call of [adapter.read('k'), adapter.replace('k', 'one', 'two', ttlMs), adapter.remove('k', 'one')])
      await expect(call).rejects.toBeInstanceOf(Error);
    expect(await stage.client.type('k')).toBe('list');
  });

  it('A write that the server refuses was not applied, and one whose reply is lost may have been', async () => {
    await stage.client.set('k', 'one');
    const refused = new RedisCas({ client: await stage.connectAs('reader', '-set', '-del') });
    for (const call of [
      refused.create('new', 'text', ttlMs),
      refused.replace('k', 'one', 'two', ttlMs),
      refused.remove('k', 'one'),
    ])
      await expect(call).rejects.toMatchObject({
        ...{ code: 'ERR_LOCK_STORE', outcome: 'not-applied' },
        message: expect.stringContaining('The lock store replied NOPERM to '),
        cause: { message: expect.stringMatching('^NOPERM ') },
      });
    refused.close();
    interrupt(() => stage.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'));
    await expect(adapter.replace('k', 'one', 'two', ttlMs)).rejects.toMatchObject({ outcome: 'unknown' });
  });

  describe('`create`, sent again after its connection was lost with the reply', () => {
    let proxy: TcpProxy;
    let far: Redis;
    beforeEach(async () => {
      proxy = await TcpProxy.start(stage.server.port);
      await stage.client.call('ACL', 'SETUSER', 'writer', 'reset', 'on', 'nopass', '~*', '+@all');
      const patient = { maxRetriesPerRequest: null, retryStrategy: () => 20 };
      far = stage.connect({ port: proxy.port, username: 'writer', password: 'any', ...patient });
      await far.ping();
    });
    afterEach(async () => {
      await proxy.stop();
    });

    async function created(meanwhile: () => Promise<unknown>): Promise<unknown> {
      const lost = proxy.loseReply(([command]) => command?.toLowerCase() === 'set');
      const answer = new RedisCas({ client: far }).create('k', 'one', ttlMs).catch((error: unknown) => error);
      await lost;
      // The second copy comes after what happens meanwhile.
      proxy.cutOff();
      await meanwhile();
      proxy.heal();
      return answer;
    }

    it('`create` sent again finds its own text, and reports that it wrote', async () => {
      expect(await created(async () => {})).toBe(true);
    });

    it('`create` sent again can’t tell whether it wrote if the server refuses the second copy', async () => {
      const refused = await created(() => stage.client.call('ACL', 'SETUSER', 'writer', '-set'));
      expect(refused).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
      expect(await stage.client.get('k')).toBe('one');
    });

    it('`create` sent again did not write if it finds another text', async () => {
      await stage.client.set('k', 'other');
      expect(await created(async () => {})).toBe(false);
    });
  });

  it('Connections close after some seconds without use, and not before', async () => {
    const clock = new ManualClock();
    const pool = new ConnectionPool(() => driverOf(client).createConnection()!, clock);
    const before = await connections();
    await pool.run((connection) => connection.send(['ping']));
    await clock.advance(4_999);
    await pool.run((connection) => connection.send(['ping']));
    await clock.advance(4_999);
    expect(await connections()).toBe(before + 1);
    await clock.advance(1);
    await until(async () => (await connections()) === before);
    expect(clock.timerCount).toBe(0);
  });

  it('A server that stopped replying does not occupy a connection for ever', async () => {
    await stage.client.set('k', 'one');
    await adapter.replace('k', 'one', 'two', ttlMs);
    const duplicate = jest.spyOn(client, 'duplicate');
    stage.server.pause();
    const calls = Array.from({ length: 5 }, () => adapter.replace('k', 'two', 'three', ttlMs));
    const first = await Promise.race(calls.map((call) => call.catch((error: unknown) => error)));
    expect(first).toMatchObject({ code: 'ERR_LOCK_STORE' });
    // Three beside the first one, and one in the place of that, which nobody can know any more.
    expect(duplicate).toHaveBeenCalledTimes(4);
    stage.server.resume();
    await Promise.allSettled(calls);
    await stage.client.set('k', 'four');
    expect(await adapter.replace('k', 'four', 'five', ttlMs)).toBe(true);
  });

  it('RedisCas warns of a server that may evict records', async () => {
    expect(await adapter.warning()).toBeUndefined();
    await stage.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await adapter.warning()).toMatchObject({ code: 'LOCK_EVICTION' });
    await stage.client.config('SET', 'maxmemory-policy', 'noeviction');
  });

  it('RedisCas needs only the documented rights, and no script', async () => {
    const [, name, password, rights = ''] =
      /^ACL SETUSER (\S+) on >(\S+) (.*)$/m.exec(readDocument('docs/stores/cas.md')) ?? [];
    await stage.client.call('ACL', 'SETUSER', name!, 'reset', 'on', `>${password}`, ...rights.split(' '));
    await stage.client.call('ACL', 'LOG', 'RESET');
    const limited = stage.connect({ username: name!, password: password! });
    const own = new RedisCas({ client: limited });
    const locks = createLocks({ store: new CasStore({ adapter: own }), pollMs: 200 });
    const failures: unknown[] = [];
    locks.on('storeError', (event) => failures.push(event));
    const lock = getLock('order:42');
    await Promise.all(
      [1, 2, 3].map((job) =>
        runInTrace(() => lock.run((hold) => hold.extend(40_000)), { locks, traceId: `job-${job}` }),
      ),
    );
    await locks.close();
    expect(failures).toEqual([]);
    // What a client asks for itself when it connects is not the store's.
    const denied = JSON.stringify(await stage.client.call('ACL', 'LOG'));
    expect(denied).not.toMatch(/"(get|set|del|time|watch|unwatch|multi|exec|info|eval|evalsha|script)"/);
    await expect(limited.eval('return 1', 0)).rejects.toThrow(/NOPERM/);
    await expect(limited.get('another')).rejects.toThrow(/NOPERM/);
    own.close();
  });

  it.each([undefined, {}, { client: null }, { client: { get() {} } }])('RedisCas refuses the options %j', (options) => {
    expect(() => new RedisCas(options as never)).toThrow(LockConfigError);
  });
});
