import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { Client, type Pool } from 'pg';
import { LockStoreError } from '../../../src/core/model/errors/failures.ts';
import { LockConfigError } from '../../../src/core/model/errors/mistakes.ts';
import { PostgresChannel } from '../../../src/stores/postgres/channel.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { urlOf } from '../../support/postgres/server.ts';
import { usePostgres } from '../../support/postgres/stage.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { Stream } from '../../support/stores/stream.ts';
import { until } from '../../support/until.ts';

describe('The channel of PostgresStore', () => {
  const stage = usePostgres();
  const name = () => `process-${randomUUID()}`;
  const notify = (process: string, text: string, pool: Pool = stage.pool) =>
    pool.query('SELECT pg_notify($1, $2)', [`reenlock:${process}`, text]);
  const proxies: TcpProxy[] = [];
  /** A proxy before the server, until the test is over. */
  async function startProxy(): Promise<TcpProxy> {
    const proxy = await TcpProxy.start(stage.server.port, 'any');
    proxies.push(proxy);
    return proxy;
  }
  afterEach(() => Promise.all(proxies.splice(0).map((proxy) => proxy.stop())));
  const isGone = () => until(async () => (await stage.listeners()).length === 0);

  it('One connection alongside the pool serves all processes, from the first subscription on, and the pool keeps all of its own', async () => {
    const pool = stage.connect({ max: 1 });
    stage.store = stage.storeOf({ pool });
    await stage.deafProcess().line().hold();
    expect(await stage.listeners()).toEqual([]);
    const [one] = [await stage.process(), await stage.process()];
    expect(await stage.listeners()).toHaveLength(1);
    expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
    expect(await one.heard()).toEqual([]);
  });

  it('The channel connects as the pool does, with its password, and under its own name', async () => {
    await stage.pool.query(`DROP ROLE IF EXISTS clerk`);
    await stage.pool.query(`CREATE ROLE clerk LOGIN SUPERUSER PASSWORD 's3cret'`);
    const { rows } = await stage.pool.query<{ hba_file: string }>('SHOW hba_file');
    const lines = `host all clerk 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust`;
    await stage.pool.query(`COPY (SELECT unnest(string_to_array('${lines}', E'\\n'))) TO '${rows[0]?.hba_file}'`);
    await stage.pool.query('SELECT pg_reload_conf()');
    for (const password of ['s3cret', async () => 's3cret']) {
      const pool = stage.connect({ ...clientOptions(undefined), user: 'clerk', password });
      const unsubscribe = await stage.storeOf({ pool }).subscribe(name(), () => {});
      expect(await stage.listeners()).toEqual([{ user: 'clerk', application: 'reenlock' }]);
      await unsubscribe();
      await isGone();
    }
    const pool = stage.connect({ ...clientOptions(undefined), user: 'clerk', password: 'wrong' });
    const error: unknown = await stage
      .storeOf({ pool })
      .subscribe(name(), () => {})
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ outcome: 'not-applied', cause: { code: '28P01' } });
    expect(inspectAll(error)).not.toContain('wrong');
  });

  it('The channel connects by `listen`, a connection string or a client’s options', async () => {
    for (const listen of [`${stage.server.url}?application_name=direct`, clientOptions('direct')]) {
      const unsubscribe = await stage.storeOf({ listen }).subscribe(name(), () => {});
      expect(await stage.listeners()).toMatchObject([{ application: 'direct' }]);
      await unsubscribe();
      await isGone();
    }
  });

  function clientOptions(application_name: string | undefined) {
    return {
      connectionString: undefined,
      host: '127.0.0.1',
      port: stage.server.port,
      user: 'postgres',
      database: 'postgres',
      application_name,
    };
  }

  it('The connection closes with the last subscription, and a new subscription opens another', async () => {
    const [one, two] = [await stage.process(), await stage.process()];
    await one.leave();
    expect(await stage.listeners()).toHaveLength(1);
    await two.leave();
    await isGone();
    const holder = two.line();
    await holder.hold();
    await one.listen();
    const waiter = await one.line().wait();
    await holder.release();
    expect(await one.granted(waiter)).toMatchObject({ isClaim: true });
  });

  it('Many subscriptions at the same moment work, and others while the first is on its way', async () => {
    const streams = Array.from({ length: 10 }, () => new Stream());
    const names = streams.map(name);
    const ends = await Promise.all(streams.map(({ listen }, i) => stage.store.subscribe(names[i]!, listen)));
    for (const [i, stream] of streams.entries()) {
      await notify(names[i]!, `lost hold-${i}`);
      expect(await stream.next('lost')).toEqual({ kind: 'lost', holdId: `hold-${i}` });
    }
    expect(await stage.listeners()).toHaveLength(1);
    for (const end of ends) await end();
  });

  it('The channel reconnects when the server was restarted, however long that took', async () => {
    const stream = new Stream();
    const process = name();
    const unsubscribe = await stage.store.subscribe(process, stream.listen);
    await stream.next('resubscribed');
    await stage.server.kill();
    // Lost, and tried in vain.
    for (const _ of [1, 2, 3]) await stream.next('fault');
    await stage.server.restart();
    await stream.next('resubscribed');
    await notify(process, 'lost hold-1');
    await stream.next('lost');
    await unsubscribe();
  });

  it('A subscription without a connection is in force with the next connection', async () => {
    const [one, two] = [new Stream(), new Stream()];
    const names = [name(), name()] as const;
    const proxy = await startProxy();
    const store = stage.storeOf({ listen: urlOf(proxy.port) });
    const ends = [await store.subscribe(names[0], one.listen)];
    await one.next('resubscribed');
    proxy.cut();
    await one.next('fault');
    ends.push(await store.subscribe(names[1], two.listen));
    await one.next('resubscribed');
    for (const process of names) await notify(process, 'lost hold-1');
    await Promise.all([one.next('lost'), two.next('lost')]);
    expect(await stage.listeners()).toHaveLength(1);
    for (const end of ends) await end();
  });

  it('The channel notices a half-open connection by a ping without a reply, and connects anew', async () => {
    const { proxy, clock, channel, stream } = await openChannel();
    const process = name();
    const unsubscribe = await channel.subscribe(process, stream.listen);
    await stream.next('resubscribed');
    proxy.halfOpen();
    await clock.advance(5_000);
    proxy.heal();
    await clock.advance(2_000);
    expect(await stream.next('fault')).toMatchObject({
      error: { message: 'Expected a reply within 2000 ms, got none' },
    });
    await clock.advance(50);
    await stream.next('resubscribed');
    await notify(process, 'lost hold-1');
    await stream.next('lost');
    await unsubscribe();
    expect(clock.timerCount).toBe(0);
  });

  it('The channel stays on a connection whose pings get replies', async () => {
    const { clock, channel, stream } = await openChannel();
    const unsubscribe = await channel.subscribe(name(), stream.listen);
    await stream.next('resubscribed');
    for (let round = 0; round < 3; round++) {
      await clock.advance(5_000);
      // It is answered after the ping.
      await (await channel.subscribe(name(), () => {}))();
    }
    expect(stream.messages).toEqual([]);
    await unsubscribe();
    expect(clock.timerCount).toBe(0);
  });

  it('The channel leaves neither a connection nor a timer when it ends on a half-open connection', async () => {
    const { proxy, clock, channel, stream } = await openChannel();
    const unsubscribe = await channel.subscribe(name(), stream.listen);
    proxy.halfOpen();
    await clock.advance(5_000);
    await unsubscribe();
    await until(() => clock.timerCount === 0);
    proxy.cut();
    await isGone();
  });

  /** A channel whose own connection goes through a proxy. */
  async function openChannel() {
    const [proxy, clock] = [await startProxy(), new ManualClock()];
    const host = {
      connect: () => new Client(urlOf(proxy.port)),
      async notify(to: string, text: string) {
        await stage.pool.query('SELECT pg_notify($1, $2)', [to, text]);
        return 'the only server';
      },
    };
    return { proxy, clock, channel: new PostgresChannel(host, 'reenlock', 60_000, clock), stream: new Stream() };
  }

  it('The channel gives up on a server that does not respond, and leaves nothing', async () => {
    const proxy = await startProxy();
    proxy.halfOpen();
    const store = stage.storeOf({ listen: urlOf(proxy.port), timeoutMs: 100 });
    const outcome = store.subscribe(name(), () => {});
    await expect(outcome).rejects.toBeInstanceOf(LockStoreError);
    await expect(outcome).rejects.toMatchObject({ outcome: 'not-applied' });
    proxy.heal();
    proxy.cut();
    await until(() => proxy.size === 0);
  });

  it.each([
    ['nobody listens at the port', 'postgres://postgres:s3cret@127.0.0.1:1/postgres'],
    ['the database does not exist', ''],
    ['it is no address', 'postgres://postgres:s3cret@:::/x'],
  ])('A subscription rejects at once if %s, and its error names no password', async (_, url) => {
    const listen = url || stage.server.url.replace('/postgres', ':s3cret@/nowhere').replace('s3cret@/', 's3cret/');
    const outcome = stage.storeOf({ listen }).subscribe(name(), () => {});
    const error = (await outcome.catch((reason: unknown) => reason)) as LockStoreError;
    expect(error).toBeInstanceOf(LockStoreError);
    expect(inspectAll(error)).not.toContain('s3cret');
  });

  it('A subscription rejects if `listen` leads to another database than the pool: no message would ever arrive', async () => {
    await stage.pool.query('CREATE DATABASE elsewhere');
    const store = stage.storeOf({ listen: stage.server.url.replace(/postgres$/, 'elsewhere'), timeoutMs: 300 });
    const outcome = store.subscribe(name(), () => {});
    await expect(outcome).rejects.toMatchObject({
      code: 'ERR_LOCK_STORE',
      cause: { message: expect.stringContaining('connect both to the same database') },
    });
    await until(async () => (await stage.pool.query(`DROP DATABASE elsewhere`).catch(() => false)) !== false);
  });

  it('A name that is too long for a channel is refused', async () => {
    await stage.store.subscribe('p'.repeat(54), () => {}).then((unsubscribe) => unsubscribe());
    await expect(stage.store.subscribe('p'.repeat(55), () => {})).rejects.toBeInstanceOf(LockConfigError);
    await expect(stage.store.subscribe('ä'.repeat(28), () => {})).rejects.toBeInstanceOf(LockConfigError);
  });

  it('A name is taken literally, whatever its characters', async () => {
    const stream = new Stream();
    const process = `a"; DROP SCHEMA reenlock; --'`;
    const unsubscribe = await stage.store.subscribe(process, stream.listen);
    await notify(process, 'lost hold-1');
    await stream.next('lost');
    const waiter = { ...(await stage.process()).line().request, process };
    expect(await stage.store.acquire(waiter, { leaseMs: 1, queue: true, maxWaiters: 1, livenessMs: 1 })).toMatchObject({
      status: 'granted',
    });
    await unsubscribe();
  });

  it('The channel is not ended by a server that ends idle connections', async () => {
    await stage.pool.query(`ALTER DATABASE postgres SET idle_session_timeout = '50ms'`);
    const pool = stage.connect();
    const stream = new Stream();
    const process = name();
    const unsubscribe = await stage.storeOf({ pool }).subscribe(process, stream.listen);
    await stage.pool.query(`ALTER DATABASE postgres RESET idle_session_timeout`);
    await stream.next('resubscribed');
    await until(async () => pool.totalCount === 0 || (await stage.pool.query('SELECT pg_sleep(0.1)')) === undefined);
    await notify(process, 'lost hold-1');
    expect((await stream.next('lost')).holdId).toBe('hold-1');
    expect(stream.messages).toEqual([]);
    await unsubscribe();
  });
});

/** All that a log could print of an error, and of its causes. */
function inspectAll(error: unknown): string {
  return inspect(error, { depth: 9, showHidden: false }) + JSON.stringify(error) + String((error as Error).cause);
}
