import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { createLocks, lock, runInTrace } from '../../../src/core/index.ts';
import type { ReleaseReply } from '../../../src/core/model/store.ts';
import { IoredisDriver } from '../../../src/core/stores/redis/drivers/ioredis.ts';
import { RedisStore } from '../../../src/core/stores/redis/redis-store.ts';
import { acquire } from '../../../src/core/stores/redis/scripts.generated.ts';
import { RedisUnsent } from '../../../src/core/stores/redis/unsent.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { until } from '../../support/until.ts';

watchLeaks();

describe('a try that is refused', () => {
  const stage = useRedis();

  /** One try on a key that another holds, through a proxy that may lose its reply; answers the command as it was sent. */
  async function refused(losesReply: boolean): Promise<readonly string[]> {
    const proxy = await TcpProxy.start(stage.server.port);
    const client = new Redis(proxy.port, { retryStrategy: () => 10 });
    // What is sent before there is a connection can't be told from what was sent on another one.
    await client.ping();
    const locks = createLocks({ store: new RedisStore({ client }) });
    let sent: readonly string[] = [];
    const isTry = (words: readonly string[]): boolean => {
      if (words[1] !== acquire.sha1) return false;
      sent = words;
      return losesReply;
    };
    void proxy.loseReply(isTry);
    try {
      expect(await runInTrace(() => lock.tryAcquire('key'), { locks, traceId: 'another' })).toBeNull();
      expect(proxy.lost).toBe(losesReply ? 1 : 0);
    } finally {
      // What was sent in the background is answered then.
      await locks.close();
      client.disconnect();
      await proxy.stop();
    }
    return sent;
  }

  /** How many scripts the server has run. */
  async function runs(): Promise<number> {
    const [, calls] = (await stage.client.info('commandstats')).match(/evalsha:calls=(\d+)/) ?? [];
    return Number(calls);
  }

  it('A refused try leaves nothing if its client sent it twice, and the copy comes when the key is free', async () => {
    const locks = createLocks({ store: new RedisStore({ client: stage.client }) });
    const [command = '', ...args] = await runInTrace(() => lock.run('key', () => refused(true)), { locks });
    expect(await stage.client.call(command, ...args)).toContain('cancelled');
    expect((await stage.store.inspect('key')).holds).toEqual([]);
    await locks.close();
  });

  it('A refused try costs no further call if it was sent once', async () => {
    const locks = createLocks({ store: new RedisStore({ client: stage.client }) });
    await runInTrace(
      () =>
        lock.run('key', async () => {
          const before = await runs();
          await refused(false);
          expect(await runs()).toBe(before + 1);
        }),
      { locks },
    );
    await locks.close();
  });
});

describe('a release that is tried again', () => {
  const stage = useRedis();

  it('A repeated release without a connection is sent once, and with a connection every time', async () => {
    const client = stage.connect({ maxRetriesPerRequest: null });
    client.on('error', () => {});
    await client.ping();
    stage.store = new RedisStore({ client });
    const process = stage.deafProcess();
    const [line, other] = [process.line(), process.line()];
    await stage.server.kill();
    await until(() => client.status !== 'ready');
    const answers = [line.release(), line.release(), other.release(), line.release()];
    await stage.server.restart();
    for (const { status } of await Promise.all(answers)) expect(status).toBe('absent');
    const calls = async () => (await client.info('commandstats')).match(/_evalsha:calls=(\d+)/)?.[1];
    // One of the two once more: the server had lost their script, whose source the other has sent.
    expect(await calls()).toBe('3');
    await Promise.all([line.release(), line.release()]);
    expect(await calls()).toBe('5');
    client.disconnect();
  });

  it.each([
    ['the present ioredis', Redis],
    ['ioredis 5', Redis5 as unknown as typeof Redis],
  ])('A repeated release is sent once also by a client that gives it up meanwhile, with %s', async (_name, Client) => {
    const { port } = stage.server;
    const client = new Client({ port, maxRetriesPerRequest: null, commandTimeout: 10, retryStrategy: () => 10 });
    client.on('error', () => {});
    await until(() => client.status === 'ready');
    stage.store = new RedisStore({ client });
    const line = stage.deafProcess().line();
    await stage.server.kill();
    await until(() => client.status !== 'ready');
    const givenUp = { cause: { message: 'Command timed out' } };
    for (let tries = 0; tries < 3; tries++) await expect(line.release()).rejects.toMatchObject(givenUp);
    client.options.commandTimeout = undefined;
    await stage.server.restart();
    await until(() => client.status === 'ready');
    // It comes behind what the client has kept.
    expect((await line.release()).status).toBe('absent');
    expect(await client.info('commandstats')).toMatch(/_evalsha:calls=2,/);
    client.disconnect();
  });

  it('A repeated release is sent each time by a client that drops what it has sent when the connection ends', async () => {
    const client = stage.connect({ maxRetriesPerRequest: null, autoResendUnfulfilledCommands: false });
    client.on('error', () => {});
    await client.ping();
    stage.store = new RedisStore({ client });
    const line = stage.deafProcess().line();
    await stage.server.kill();
    await until(() => client.status !== 'ready');
    const dropped = jest.fn();
    line.release().then(dropped, dropped);
    // Listened for beforehand: it may be ready again before the restart is told.
    const again = new Promise<ReleaseReply>((resolve, reject) => {
      client.once('ready', () => {
        client.once('close', () => line.release().then(resolve, reject));
        client.stream.destroy();
      });
    });
    await stage.server.restart();
    expect((await again).status).toBe('absent');
    expect(dropped).not.toHaveBeenCalled();
    client.disconnect();
  });

  it('A repeated release is sent again once it was answered, well or not, even if there is still no connection', async () => {
    const client = { status: 'connecting', options: {} } as Redis;
    const unsent = new RedisUnsent(new IoredisDriver(client));
    const { request } = stage.deafProcess().line();
    const answers = [
      Promise.reject(new Error('given up')),
      Promise.resolve<ReleaseReply>({ status: 'absent', nowMs: 1, claims: [] }),
      Promise.resolve<ReleaseReply>({ status: 'absent', nowMs: 2, claims: [] }),
    ];
    const run = () => unsent.run(request, () => answers.shift()!);
    await expect(run()).rejects.toThrow('given up');
    expect((await run()).nowMs).toBe(1);
    expect((await run()).nowMs).toBe(2);
  });
});
