import { CallHistory } from '../../../src/stores/redis/call-history.ts';
import { driverOf } from '../../../src/stores/redis/drivers/driver-of.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';

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

  it('An acquire whose reply is reported twice does not count for another one', () => {
    const history = new CallHistory(driverOf(stage.client));
    const { request } = stage.deafProcess().line();
    history.acquireSent(request);
    const onReply = history.acquireSent(request);
    expect([onReply(), onReply()]).toEqual([true, true]);
    expect(history.mayAcquireArrive(request)).toBe(true);
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
