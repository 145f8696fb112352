import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { inspect } from 'node:util';
import { Redis } from 'ioredis';
import { RedisChannel } from '../../../src/stores/redis/channel.ts';
import { driverOf } from '../../../src/stores/redis/drivers/driver-of.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { ioredisVersions } from '../../support/redis/ioredis.ts';
import { type RedisOptions, useRedis } from '../../support/redis/redis-stage.ts';
import { startRedis } from '../../support/redis/server.ts';
import { Stream } from '../../support/stores/stream.ts';
import { until } from '../../support/until.ts';

describe('The channel of RedisStore', () => {
  const stage = useRedis();

  const connections = () => stage.connections();
  const isGone = () => until(async () => (await connections()).length === 0);
  afterEach(isGone);

  /** A channel of a client, on a clock that the test moves, with one subscription in force. */
  async function open(client: Redis = stage.connect()) {
    const [clock, stream] = [new ManualClock(), new Stream()];
    const duplicate = jest.spyOn(client, 'duplicate');
    const channel = new RedisChannel(driverOf(client), 'grants:', clock);
    const end = await channel.subscribe('process', stream.listen);
    await stream.next('resubscribed');
    const connection = () => duplicate.mock.results[0]?.value as Redis;
    /** All that the channel has sent before is answered: pings, too. */
    const answered = async () => (await channel.subscribe('another', () => {}))();
    /** Another subscription, up to the end of its time. */
    const late = async () => {
      const asked = channel.subscribe('second', () => {}).catch((reason: unknown) => reason);
      await clock.advance(2_000);
      expect(await asked).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    };
    return { answered, channel, clock, connection, end, late, stream };
  }

  const name = () => `process-${randomUUID()}`;

  it('One connection serves all processes, is opened with the first subscription, and is in force when `subscribe` resolves', async () => {
    await stage.deafProcess().line().hold();
    expect(await connections()).toEqual([]);
    const [one, two] = [await stage.process(), await stage.process()];
    const open = await connections();
    expect(open).toHaveLength(1);
    expect(open[0]).toMatch(/ sub=2 /);
    expect(await stage.client.pubsub('CHANNELS')).toEqual(
      expect.arrayContaining([`reenlock:grants:${one.name}`, `reenlock:grants:${two.name}`]),
    );
  });

  it.each(ioredisVersions)(
    'The channel takes another subscription while the first is on its way, at any moment of that (%s)',
    async (_, { Redis: Client }) => {
      for (const moment of ['connect', 'ready']) {
        const client = new Client(stage.server.port);
        await client.ping();
        const duplicate = jest.spyOn(client, 'duplicate');
        const channel = new RedisChannel(driverOf(client), 'grants:');
        const stream = new Stream();
        const first = channel.subscribe('first', stream.listen);
        const connection = duplicate.mock.results[0]?.value as Redis;
        await once(connection, moment);
        const ends = await Promise.all([
          first,
          channel.subscribe('second', () => {}),
          channel.subscribe('third', stream.listen),
        ]);
        expect(await stage.client.pubsub('CHANNELS')).toHaveLength(3);
        expect(stream.messages.filter(({ kind }) => kind === 'fault')).toEqual([]);
        for (const end of ends) await end();
        client.disconnect();
        await isGone();
      }
    },
  );

  it('The channel is subscribed in the first database, whichever the client uses', async () => {
    const client = stage.connect({ db: 3 });
    const end = await new RedisStore({ client }).subscribe(name(), () => {});
    const list = await connections();
    expect(list.filter((line) => / sub=1 /.test(line))).toEqual([expect.stringMatching(/ db=0 /)]);
    await end();
  });

  it('The connection closes with the last subscription, and a new subscription opens another', async () => {
    const [one, two] = [await stage.process(), await stage.process()];
    await one.leave();
    await until(async () => / sub=1 /.test((await connections()).join()));
    await two.leave();
    await isGone();
    const holder = two.line();
    await holder.hold();
    await one.listen();
    const waiter = await one.line().wait();
    await holder.release();
    expect(await one.granted(waiter)).toMatchObject({ isClaim: true });
    await one.leave();
  });

  it('The channel reports free keys only as long as a process asks for it', async () => {
    const [one, two] = [await stage.process({ freed: true }), await stage.process({ freed: true })];
    expect(await connections()).toEqual([expect.stringMatching(/ sub=3 /)]);
    await one.leave();
    await until(async () => / sub=2 /.test((await connections()).join()));
    const other = await stage.process();
    await two.leave();
    await until(async () => / sub=1 /.test((await connections()).join()));
    await other.leave();
  });

  it('The channel reports free keys on a connection that was there before, and again on the next one', async () => {
    const stream = new Stream();
    await stage.process();
    const end = await stage.store.subscribe(name(), stream.listen, { freed: true });
    for (const _ of [1, 2]) {
      await stage.client.publish('reenlock:grants:freed', 'freed order:42');
      expect(await stream.next('freed')).toEqual({ kind: 'freed', id: 'order:42' });
      await stage.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await stream.next('resubscribed');
    }
    await end();
  });

  it('The channel reconnects when the server was restarted, after it reported the fault', async () => {
    const stream = new Stream();
    const process = name();
    const unsubscribe = await stage.store.subscribe(process, stream.listen);
    await stream.next('resubscribed');
    await stage.server.kill();
    expect(await stream.next('fault')).toMatchObject({ error: { message: expect.any(String) } });
    await stage.server.restart();
    await stream.next('resubscribed');
    expect(await stage.client.publish(`reenlock:grants:${process}`, 'lost hold-1')).toBe(1);
    await stream.next('lost');
    await unsubscribe();
  });

  it('The channel reconnects when the password was changed, as the application changes it in the options of its client', async () => {
    await stage.client.call('ACL', 'SETUSER', 'locks', 'on', '>first', '~*', '&*', '+@all');
    const client = stage.connect({ username: 'locks', password: 'first' });
    const stream = new Stream();
    const unsubscribe = await new RedisStore({ client }).subscribe(name(), stream.listen);
    await stream.next('resubscribed');
    await stage.client.call('ACL', 'SETUSER', 'locks', '<first', '>second');
    client.options.password = 'second';
    await stage.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await stream.next('resubscribed');
    // While the application has not: what is told has neither password.
    await stage.client.call('ACL', 'SETUSER', 'locks', '<second', '>third');
    await stage.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    const fault = await stream.next('fault');
    expect(fault).toMatchObject({ error: { message: expect.stringContaining('WRONGPASS') } });
    expect(inspect(fault, { depth: 9 })).not.toContain('second');
    client.options.password = 'third';
    await stream.next('resubscribed');
    await unsubscribe();
    await stage.client.call('ACL', 'DELUSER', 'locks');
  });

  it('The channel reconnects when no Sentinel was to be found, even if its client would have given up', async () => {
    const sentinel = await startRedis({ sentinel: `sentinel monitor main 127.0.0.1 ${stage.server.port} 1\n` });
    const sentinels = [{ host: '127.0.0.1', port: sentinel.port }];
    const client = new Redis({ name: 'main', sentinels, sentinelRetryStrategy: () => null });
    const stream = new Stream();
    const unsubscribe = await new RedisStore({ client }).subscribe(name(), stream.listen);
    await stream.next('resubscribed');
    await sentinel.kill();
    await stage.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await stream.next('fault');
    await sentinel.restart();
    await stream.next('resubscribed');
    await unsubscribe();
    client.disconnect();
    await sentinel.stop();
  });

  it.each<{ name: string; options: RedisOptions }>([
    { name: 'half open', options: {} },
    { name: 'half open, though the client gives its commands up before', options: { commandTimeout: 500 } },
  ])(
    'notices a connection that is $name: a ping is not answered in time, and it connects anew',
    async ({ options }) => {
      const client = stage.connect(options);
      await client.ping();
      const [own] = await connections();
      const other = async () => (await connections()).map(idOf).filter((id) => id !== idOf(own!));
      const { answered, clock, end, stream } = await open(client);
      await clock.advance(5_000);
      // Nothing is left of the deadline of the ping.
      await answered();
      expect(clock.timerCount).toBe(1);
      const before = await other();
      stage.server.pause();
      await clock.advance(5_000);
      // What the client would give up is given up by now.
      await new Promise((resolve) => setTimeout(resolve, 600));
      await clock.advance(2_000);
      stage.server.resume();
      await stream.next('resubscribed');
      await until(async () => (await other()).length === 1);
      expect(await other()).not.toEqual(before);
      await until(() => clock.timerCount === 1);
      await end();
      await until(() => clock.timerCount === 0);
    },
  );

  function idOf(connection: string): string | undefined {
    return connection.split(' ')[0];
  }

  it('The channel leaves neither a connection nor a timer when it ends while a ping is on its way', async () => {
    const { clock, connection, end } = await open();
    const closed = once(connection(), 'end');
    stage.server.pause();
    await clock.advance(5_000);
    await end();
    stage.server.resume();
    await closed;
    await clock.settle();
    expect(clock.timerCount).toBe(0);
  });

  it('The channel stays on a connection whose pings are refused: that is a reply', async () => {
    const { answered, clock, end, stream } = await open(await stage.connectAs('silent', '-ping'));
    await clock.advance(5_000);
    await answered();
    expect(clock.timerCount).toBe(1);
    await clock.advance(2_000);
    await answered();
    expect(stream.messages).toEqual([]);
    await end();
  });

  it.each(['reconnecting', 'connecting', 'connect', 'ready'])(
    'The channel ends for all at once, whatever becomes of its connection: it is `%s`',
    async (state) => {
      const { channel, connection, end } = await open();
      const ends = [end, await channel.subscribe('second', () => {})];
      const changed = once(connection(), state);
      connection().stream.destroy();
      await changed;
      await Promise.all(ends.map((each) => each()));
    },
  );

  it('The channel leaves no rejection behind if it ends while it subscribes again', async () => {
    const { connection, end } = await open(stage.connect({ db: 1 }));
    const ready = once(connection(), 'ready');
    connection().stream.destroy();
    await ready;
    const ended = end();
    // Before any answer: whatever awaits one is told that none will come.
    connection().stream.destroy();
    await Promise.all([ended, once(connection(), 'end')]);
  });

  it('The channel reports the fault if it may not subscribe again, and tries instead of each ping', async () => {
    const { answered, clock, end, stream } = await open(await stage.connectAs('guest', 'resetchannels', '&grants:*'));
    const refusal = { error: { message: expect.stringContaining('NOPERM') } };
    // It ends the connections of those who are subscribed to what they may no longer hear.
    await stage.client.call('ACL', 'SETUSER', 'guest', 'resetchannels');
    expect(await stream.next('fault')).toMatchObject(refusal);
    await clock.advance(5_000);
    expect(await stream.next('fault')).toMatchObject(refusal);
    await stage.client.call('ACL', 'SETUSER', 'guest', '&grants:*');
    await clock.advance(5_000);
    await stream.next('resubscribed');
    expect(await stage.client.publish('grants:process', 'lost hold-1')).toBe(1);
    await stream.next('lost');
    await clock.advance(5_000);
    await answered();
    expect(stream.messages).toEqual([]);
    await end();
    expect(clock.timerCount).toBe(0);
  });

  it('A subscription that is not in force in time is a LockStoreError, and its connection is closed', async () => {
    const clock = new ManualClock();
    const channel = new RedisChannel(driverOf(stage.client), 'grants:', clock);
    stage.server.pause();
    const asked = channel.subscribe('process', () => {}).catch((reason: unknown) => reason);
    await clock.advance(2_000);
    expect(await asked).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    expect(clock.timerCount).toBe(0);
    stage.server.resume();
  });

  it('A subscription waits for a server that is away, even if its client would have given up', async () => {
    const client = stage.connect({ maxRetriesPerRequest: 0 });
    await client.ping();
    await stage.server.kill();
    const asked = new RedisChannel(driverOf(client), 'grants:', new ManualClock()).subscribe('process', () => {});
    await stage.server.restart();
    await (await asked)();
  });

  it('A subscription that is not in force in time leaves the others as they are', async () => {
    const { clock, end, late, stream } = await open();
    stage.server.pause();
    await late();
    stage.server.resume();
    await until(async () => / sub=1 /.test((await connections()).join()));
    await stage.client.publish('grants:process', 'lost hold-1');
    await stream.next('lost');
    await end();
    await until(() => clock.timerCount === 0);
  });

  it('A subscription that is not in force in time does not come into force when its connection is made', async () => {
    const { answered, clock, connection, end, late, stream } = await open();
    stage.server.pause();
    connection().stream.destroy();
    await once(connection(), 'connect');
    const listening = connection().listenerCount('ready');
    await late();
    expect(connection().listenerCount('ready')).toBe(listening);
    // One that is half open from its beginning is given up as well, and so is the one after it.
    for (const ms of [5_000, 7_000]) {
      const again = once(connection(), 'connect');
      await clock.advance(ms);
      await again;
    }
    stage.server.resume();
    await stream.next('resubscribed');
    await answered();
    expect(await stage.client.pubsub('CHANNELS')).toEqual(['grants:process']);
    await end();
  });

  it('The end of a subscription to which the server does not reply in time is reported', async () => {
    const { channel, clock, end } = await open();
    const last = await channel.subscribe('second', () => {});
    stage.server.pause();
    const ended = end().catch((reason: unknown) => reason);
    await clock.advance(2_000);
    expect(await ended).toMatchObject({ message: 'Expected a reply within 2000 ms, got none' });
    stage.server.resume();
    await last();
  });

  it('A subscription that the server refuses is a LockStoreError, and its connection is closed', async () => {
    const mute = await stage.connectAs('mute', 'resetchannels');
    await mute.ping();
    const subscribed = new RedisStore({ client: mute }).subscribe(name(), () => {});
    await expect(subscribed).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied' });
    await until(async () => (await connections()).length === 1);
  });
});
