import type { Redis } from 'ioredis';
import { ConnectionPool } from '../../../src/stores/redis/connection-pool.ts';
import type { RedisConnection } from '../../../src/stores/redis/drivers/driver.ts';
import { driverOf } from '../../../src/stores/redis/drivers/driver-of.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { until } from '../../support/until.ts';

describe('The connections of a pool', () => {
  const stage = useRedis();
  const clock = new ManualClock();
  const poolOf = (client: Redis) => new ConnectionPool(() => driverOf(client).createConnection()!, clock);
  let pool: ConnectionPool;
  beforeEach(() => {
    pool = poolOf(stage.client);
  });
  afterEach(() => pool.close());

  const count = async () => (await stage.connections()).length;

  const ping = (connection: RedisConnection) => connection.send(['ping']);

  it('Connections are kept for the next transaction, and closed with the pool', async () => {
    await pool.run(ping);
    expect([await count(), clock.timerCount]).toEqual([1, 1]);
    pool.close();
    await until(async () => (await count()) === 0);
    expect(clock.timerCount).toBe(0);
  });

  it('Connections close when their transaction ends if the pool was closed meanwhile', async () => {
    await pool.run(async (connection) => {
      await ping(connection);
      pool.close();
    });
    expect(clock.timerCount).toBe(0);
    await until(async () => (await count()) === 0);
  });

  it('Connections serve a later transaction, and are kept no longer than it takes', async () => {
    pool.close();
    expect(await Promise.all([1, 2, 3, 4, 5].map(() => pool.run(ping)))).toEqual(Array(5).fill('PONG'));
    expect(clock.timerCount).toBe(0);
    await until(async () => (await count()) === 0);
    pool.open();
    await pool.run(ping);
    expect([await count(), clock.timerCount]).toEqual([1, 1]);
  });

  it('Connections are in the database that the client has selected since, even if one of another is kept', async () => {
    const database = async (connection: RedisConnection) =>
      /\bdb=(\d+)/.exec(String(await connection.send(['client', 'INFO'])))?.[1];
    expect(await pool.run(database)).toBe('0');
    await stage.client.select(2);
    expect(await pool.run(database)).toBe('2');
    await stage.client.select(0);
    expect(await pool.run(database)).toBe('0');
    await until(async () => (await count()) === 1);
  });

  it('A kept connection that is lost is opened anew', async () => {
    const lost = await pool.run(async (connection) => connection);
    await stage.client.client('KILL', 'ID', String(await lost.send(['client', 'ID'])));
    await until(() => !lost.isUsable);
    expect(await pool.run(ping)).toBe('PONG');
  });

  it('Connections are lent in the order of the requests', async () => {
    const order: number[] = [];
    const asked = Array.from({ length: 9 }, (_, n) => pool.run(async () => void order.push(n)));
    await Promise.all(asked);
    // The first four are not, each on a connection of its own.
    expect(order.filter((n) => n >= 4)).toEqual([4, 5, 6, 7, 8]);
  });

  it('Connections report what the server said, whatever the client would do then', async () => {
    const client = stage.connect({ reconnectOnError: () => 2 });
    const others = poolOf(client);
    await expect(others.run((connection) => connection.send(['none']))).rejects.toThrow('unknown command');
  });

  it('Connections of a store that waits for replicas are kept until its last subscriber has gone', async () => {
    stage.store = new RedisStore({ client: stage.client, waitReplicas: 1 });
    const [one, two] = [await stage.process(), await stage.process()];
    const ask = async () => expect(await stage.deafProcess().line().renew(1)).toMatchObject({ status: 'lost' });
    await ask();
    expect(await count()).toBe(2);
    await one.leave();
    expect(await count()).toBe(2);
    await two.leave();
    await until(async () => (await count()) === 0);
    await ask();
    await until(async () => (await count()) === 0);
    await one.listen();
    await ask();
    const opened = async () => /total_connections_received:(\d+)/.exec(await stage.client.info('stats'))?.[1];
    const before = await opened();
    await ask();
    expect(await opened()).toBe(before);
    await one.leave();
    await until(async () => (await count()) === 0);
  });
});
