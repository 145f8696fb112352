import type { Redis } from 'ioredis';
import type { HoldRequest } from '../../../src/core/model/store.ts';
import { CallHistory } from '../../../src/stores/redis/call-history.ts';
import { IoredisDriver } from '../../../src/stores/redis/drivers/ioredis/single-driver.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';

describe('CallHistory', () => {
  const connected = (): Redis['stream'] => ({}) as Redis['stream'];
  const client = { stream: connected() } as Redis;
  const request = (holdId = 'hold', id = 'order:42'): HoldRequest => ({
    id,
    holdId,
    owner: 'owner',
    process: 'process',
    mode: 'write',
    priority: 0,
    claimMs: longMs,
  });

  it('CallHistory returns that no acquire can arrive if all of them got replies', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const hold = request();
    expect(history.acquireSent(hold)()).toBe(false);
    expect(history.mayAcquireArrive(hold)).toBe(false);
  });

  it('CallHistory returns that an acquire may arrive if one got no reply, or if the store never sent one', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const hold = request();
    history.acquireSent(hold);
    expect(history.acquireSent(hold)()).toBe(true);
    expect(history.mayAcquireArrive(hold)).toBe(true);
    expect(history.mayAcquireArrive(request('other'))).toBe(true);
  });

  it('An acquire whose reply is reported twice does not count for another one', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const hold = request();
    history.acquireSent(hold);
    const onAnswered = history.acquireSent(hold);
    expect([onAnswered(), onAnswered()]).toEqual([true, true]);
    expect(history.mayAcquireArrive(hold)).toBe(true);
  });

  it('CallHistory returns that an acquire may arrive if one got its reply on another connection than it was sent on', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const hold = request();
    const onAnswered = history.acquireSent(hold);
    client.stream = connected();
    expect(onAnswered()).toBe(true);
    expect(history.mayAcquireArrive(hold)).toBe(true);
  });
});

describe('Releases that the server remembers', () => {
  const stage = useRedis();
  const [lock, tombstones] = ['lock', 'tombstones'].map((name) => `reenlock:{order:42}:${name}`) as [string, string];

  it('No release is remembered if all acquires got replies', async () => {
    const line = stage.deafProcess().line();
    await line.hold();
    expect((await line.release(longMs)).status).toBe('released');
    expect((await line.release(longMs)).status).toBe('absent');
    expect(await stage.client.keys('*')).toEqual([lock]);
  });

  it('A release is remembered if an acquire of its hold may still arrive, for as long as was asked', async () => {
    const line = stage.deafProcess().line();
    await line.copy.release(longMs);
    expect(await stage.client.zrange(tombstones, '0', '-1')).toEqual([line.holdId]);
    expect(await stage.client.pttl(tombstones)).toBeGreaterThan(longMs - 10_000);
    expect(await stage.client.pttl(lock)).toBeGreaterThan(longMs - 10_000);
    expect((await line.ask()).status).toBe('cancelled');
    expect((await stage.deafProcess().line().hold()).isClaim).toBe(false);
  });

  it('A release that was remembered for long enough is forgotten with the next one', async () => {
    const lines = [stage.deafProcess().line(), stage.deafProcess().line()] as const;
    await lines[0].copy.release(longMs);
    await stage.client.zadd(tombstones, 1, lines[0].holdId);
    await lines[1].copy.release(longMs);
    expect(await stage.client.zrange(tombstones, '0', '-1')).toEqual([lines[1].holdId]);
    expect((await lines[0].ask()).status).toBe('granted');
  });

  it('Remembered releases outlast an acquire that waited for the first connection, and was sent again on the next', async () => {
    const proxy = await TcpProxy.start(stage.server.port);
    const client = stage.connect({ port: proxy.port });
    stage.store = new RedisStore({ client });
    const process = stage.deafProcess();
    const lines = [process.line(), process.line()];
    let acquire: readonly string[] = [];
    void proxy.loseReply((words) => {
      if (words[0] !== 'evalsha') return false;
      acquire = words;
      return true;
    });
    for (const line of lines) {
      await line.hold();
      expect((await line.release(longMs)).status).toBe('released');
    }
    expect(proxy.lost).toBe(1);
    const [command = '', ...args] = acquire;
    expect(await stage.client.call(command, ...args)).toContain('cancelled');
    await proxy.stop();
  });

  it('A remembered release lasts for longer than an hour if that was asked for, whichever owner has the key meanwhile', async () => {
    const dayMs = 86_400_000;
    const line = stage.deafProcess().line();
    await line.hold();
    await line.copy.release(dayMs);
    const lasts = async () => expect(await stage.client.pttl(lock)).toBeGreaterThan(dayMs - 600_000);
    await lasts();
    for (const leaseMs of [10_000, longMs]) {
      const next = stage.deafProcess().line();
      const { fence } = await next.hold({ leaseMs });
      await lasts();
      expect((await next.renew(fence)).status).toBe('renewed');
      await lasts();
      await next.copy.release(longMs);
      await lasts();
    }
    expect((await line.ask()).status).toBe('cancelled');
  });
});
