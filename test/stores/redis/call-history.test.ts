import type { Redis } from 'ioredis';
import type { HoldRequest } from '../../../src/core/model/store.ts';
import { CallHistory } from '../../../src/stores/redis/call-history.ts';
import { IoredisDriver } from '../../../src/stores/redis/drivers/ioredis/single-driver.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';

watchLeaks();

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
  /** A hold whose acquire was answered. */
  const granted = (history: CallHistory, holdId: string, id?: string): HoldRequest => {
    const hold = request(holdId, id);
    history.acquireSent(hold)();
    return hold;
  };
  /** Sends a release, and returns what the server is told with it. */
  const release = (history: CallHistory, hold: HoldRequest) => {
    const flag = history.releaseFlag(hold, longMs);
    history.releaseSent(hold);
    return flag;
  };

  it('a release says that no acquire can arrive if all of them were answered', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const hold = request();
    expect(history.acquireSent(hold)()).toBe(false);
    expect(release(history, hold)).toBe(1);
  });

  it('a release says that an acquire may arrive if one was not answered, or if the store never sent one', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const hold = request();
    history.acquireSent(hold);
    expect(history.acquireSent(hold)()).toBe(true);
    expect(release(history, hold)).toBe(2);
    expect(release(history, request('other'))).toBe(2);
  });

  it('an acquire that was not answered counts after a release that was', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const hold = request();
    history.acquireSent(hold);
    release(history, hold);
    history.releaseAnswered(hold);
    history.acquireSent(hold)();
    expect(release(history, hold)).toBe(2);
  });

  it('an acquire that is reported as answered twice does not count for another one', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const hold = request();
    history.acquireSent(hold);
    const onAnswered = history.acquireSent(hold);
    expect([onAnswered(), onAnswered()]).toEqual([true, true]);
    expect(release(history, hold)).toBe(2);
  });

  it('a release says that an acquire may arrive if one was answered on another connection than it was sent on', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const hold = request();
    const onAnswered = history.acquireSent(hold);
    client.stream = connected();
    expect(onAnswered()).toBe(true);
    expect(release(history, hold)).toBe(2);
  });

  it('a release says that another release of the same lock is open, until that one is answered', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const [first, second] = [granted(history, 'first'), granted(history, 'second')];
    release(history, first);
    expect(release(history, granted(history, 'elsewhere', 'order:43'))).toBe(1);
    expect(release(history, second)).toBe(0);
    history.releaseAnswered(second);
    history.releaseAnswered(first);
    expect(release(history, granted(history, 'third'))).toBe(1);
  });

  it('an open release counts for ten minutes after it was sent last', () => {
    const clock = new ManualClock();
    const history = new CallHistory(new IoredisDriver(client), clock);
    for (let i = 0; i < 5_000; i++) expect(release(history, granted(history, `hold-${i}`, `order:${i}`))).toBe(1);
    expect(release(history, granted(history, 'next'))).toBe(0);
    clock.skip(599_999);
    const last = granted(history, 'last');
    expect(history.releaseFlag(last, longMs)).toBe(0);
    clock.skip(1);
    expect(release(history, last)).toBe(1);
  });

  it('an open release that is sent again counts from then on', () => {
    const clock = new ManualClock();
    const history = new CallHistory(new IoredisDriver(client), clock);
    const hold = granted(history, 'hold');
    release(history, hold);
    clock.skip(300_000);
    release(history, hold);
    clock.skip(599_999);
    const next = granted(history, 'next');
    expect(history.releaseFlag(next, longMs)).toBe(0);
    clock.skip(1);
    expect(history.releaseFlag(next, longMs)).toBe(1);
  });

  it('the answer to one try of a release settles its other tries', () => {
    const history = new CallHistory(new IoredisDriver(client));
    const hold = granted(history, 'tried');
    for (let tries = 0; tries < 3; tries++) expect(release(history, hold)).toBe(1);
    history.releaseAnswered(hold);
    expect(release(history, granted(history, 'next'))).toBe(1);
  });
});

describe('releases that the server remembers', () => {
  const stage = useRedis();
  const record = 'reenlock:{order:42}:lock';

  it('Remembered releases are in the record, one for each process, if all was answered', async () => {
    const processes = [stage.deafProcess(), stage.deafProcess()];
    for (let round = 0; round < 20; round++) {
      for (const process of processes) {
        const line = process.line();
        await line.hold();
        expect((await line.release(longMs)).status).toBe('released');
        expect((await line.release(longMs)).status).toBe('released');
        expect((await line.ask()).status).toBe('cancelled');
      }
    }
    expect((await stage.client.get(record))?.match(/\n#/g)).toHaveLength(2);
    expect(await stage.client.keys('*')).toEqual([record]);
  });

  it('No release is remembered if nothing was there and nothing can come', async () => {
    const line = stage.deafProcess().line();
    await line.hold();
    await stage.client.flushall();
    for (let tries = 0; tries < 2; tries++) expect((await line.release(longMs)).status).toBe('absent');
    expect(await stage.client.keys('*')).toEqual([]);
  });

  it('Remembered releases are all that is left in the queue when nobody waits any more', async () => {
    const holder = stage.deafProcess().line();
    await holder.hold();
    const waiter = await stage.deafProcess().line().wait();
    const early = stage.deafProcess().line();
    await early.release(longMs);
    await waiter.release();
    await holder.release();
    expect(await stage.client.zrange('reenlock:{order:42}:queue', '0', '-1')).toEqual([`:ga${early.holdId}`]);
  });

  it('Releases are remembered in the queue, and answered the same, if the record is full of them', async () => {
    const lines = Array.from({ length: 40 }, () => stage.deafProcess().line());
    for (const line of lines) {
      await line.hold();
      await line.release(longMs);
    }
    expect(await stage.client.strlen(record)).toBeLessThan(2_500);
    for (const line of lines) {
      expect((await line.release(longMs)).status).toBe('released');
      expect((await line.ask()).status).toBe('cancelled');
    }
    const next = stage.deafProcess().line();
    expect((await next.hold()).isClaim).toBe(false);
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
    client.disconnect();
    await proxy.stop();
  });

  it('Remembered releases make room when their time is over, and the lock is as before', async () => {
    for (let i = 0; i < 40; i++) {
      const line = stage.deafProcess().line();
      await line.hold();
      await line.release(1);
    }
    const line = stage.deafProcess().line();
    await line.hold();
    await line.release();
    expect(await stage.client.getrange(record, 16, 17)).toBe('--');
    // Less than half of what 40 releases take: a line is added to 1,500 bytes of them at most.
    expect(await stage.client.strlen(record)).toBeLessThan(1_800);
    expect(await stage.client.keys('*')).toEqual([record]);
  });

  it.each([
    ['if all calls were answered', false],
    ['if an acquire was not answered', true],
  ])(
    'Remembered releases last for longer than an hour if that was asked for, also %s, whichever owner has the key meanwhile',
    async (_, isUnknown) => {
      const dayMs = 86_400_000;
      const line = stage.deafProcess().line();
      await line.hold();
      await (isUnknown ? line.copy : line).release(dayMs);
      const lasts = async () => expect(await stage.client.pttl(record)).toBeGreaterThan(dayMs - 600_000);
      await lasts();
      for (const tombstoneMs of [0, longMs]) {
        const next = stage.deafProcess().line();
        const { fence } = await next.hold();
        await lasts();
        expect((await next.renew(fence)).status).toBe('renewed');
        await lasts();
        await next.release(tombstoneMs);
        await lasts();
      }
      expect((await line.ask()).status).toBe('cancelled');
    },
  );

  it('Remembered releases of more than an hour are in the queue, and the record says so', async () => {
    const line = stage.deafProcess().line();
    await line.hold();
    await line.release(3_600_100);
    expect(await stage.client.getrange(record, 16, 17)).toBe('-g');
    expect(await stage.client.zrange('reenlock:{order:42}:queue', '0', '-1')).toEqual([`:gr${line.holdId}`]);
    const next = stage.deafProcess().line();
    await next.hold();
    expect((await line.ask()).status).toBe('cancelled');
  });

  it('As many releases are remembered as were sent and not answered', async () => {
    const process = stage.deafProcess();
    const lines = Array.from({ length: 3 }, () => process.line('owner'));
    for (const line of lines) await line.hold();
    await Promise.all(lines.map((line) => line.release(longMs)));
    for (const line of lines) expect((await line.release(longMs)).status).toBe('released');
  });
});
