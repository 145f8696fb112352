import { setTimeout } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { HoldRequest } from '../../../src/core/model/store.ts';
import { CallHistory } from '../../../src/core/stores/redis/call-history.ts';
import { RedisStore } from '../../../src/core/stores/redis/redis-store.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { useRedis } from '../../support/redis/stage.ts';
import { longMs } from '../contract/harness.ts';

watchLeaks();

describe('what the server is told of a release', () => {
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
    unanswered: 0,
  });
  /** Answers what it was told. */
  const release = (history: CallHistory, hold: HoldRequest) => {
    const flag = history.releaseFlag(hold, longMs);
    history.releaseSent(hold);
    return flag;
  };

  it('is that nothing else can come of it, where all was answered', () => {
    const history = new CallHistory(client);
    const hold = request();
    history.acquireSent(hold)();
    expect(release(history, hold)).toBe(1);
  });

  it('is that an acquire may come, where one was not answered, or asked for by somebody else', () => {
    const history = new CallHistory(client);
    const hold = request();
    history.acquireSent(hold);
    history.acquireSent(hold)();
    expect(release(history, hold)).toBe(2);
    const { unanswered: _, ...unknown } = request('other');
    expect(release(history, unknown)).toBe(2);
  });

  it('is that an acquire may come, where another was answered, though that was said twice', () => {
    const history = new CallHistory(client);
    const hold = request();
    history.acquireSent(hold);
    const answered = history.acquireSent(hold);
    answered();
    answered();
    expect(release(history, hold)).toBe(2);
  });

  it('is that an acquire may come, where one was answered on another connection than it was sent on', () => {
    const history = new CallHistory(client);
    const hold = request();
    const answered = history.acquireSent(hold);
    client.stream = connected();
    answered();
    expect(release(history, hold)).toBe(2);
  });

  it('is that an earlier one is open, until that is answered; on the same lock alone', () => {
    const history = new CallHistory(client);
    release(history, request('first'));
    expect(release(history, request('second', 'order:43'))).toBe(1);
    expect(release(history, request('second'))).toBe(0);
    history.releaseAnswered(request('second'));
    history.releaseAnswered(request('first'));
    expect(release(history, request('third'))).toBe(1);
  });

  it('is that none is open, however many are on other locks, and that earlier ones are, until they are over', () => {
    const clock = new ManualClock();
    const history = new CallHistory(client, clock);
    for (let i = 0; i < 5_000; i++) expect(release(history, request(`hold-${i}`, `order:${i}`))).toBe(1);
    expect(release(history, request('next', 'order:42'))).toBe(0);
    clock.skip(599_999);
    expect(history.releaseFlag(request('last', 'order:42'), longMs)).toBe(0);
    clock.skip(1);
    expect(release(history, request('last', 'order:42'))).toBe(1);
  });

  it('is that none is open, where a later try of it was answered', () => {
    const history = new CallHistory(client);
    const hold = request('tried');
    for (let tries = 0; tries < 3; tries++) expect(release(history, hold)).toBe(1);
    history.releaseAnswered(hold);
    expect(release(history, request('next'))).toBe(1);
  });
});

describe('releases that the server remembers', () => {
  const stage = useRedis();
  const record = 'reenlock:{order:42}:lock';

  it('are in the record, one a process, where all was answered', async () => {
    const processes = [stage.deafProcess(), stage.deafProcess()];
    for (let round = 0; round < 20; round++) {
      for (const process of processes) {
        const line = process.line(undefined, { unanswered: 0 });
        await line.hold();
        expect((await line.release(longMs)).status).toBe('released');
        expect((await line.release(longMs)).status).toBe('released');
        expect((await line.ask()).status).toBe('cancelled');
      }
    }
    expect((await stage.client.get(record))?.match(/\n#/g)).toHaveLength(2);
    expect(await stage.client.keys('*')).toEqual([record]);
  });

  it('are none where nothing was there, and nothing can come', async () => {
    const line = stage.deafProcess().line(undefined, { unanswered: 0 });
    for (let tries = 0; tries < 2; tries++) expect((await line.release(longMs)).status).toBe('absent');
    expect(await stage.client.keys('*')).toEqual([]);
  });

  it('are all that is left in the queue when nobody waits any more', async () => {
    const holder = stage.deafProcess().line();
    await holder.hold();
    const waiter = await stage.deafProcess().line().wait();
    const early = stage.deafProcess().line();
    await early.release(longMs);
    await waiter.release();
    await holder.release();
    expect(await stage.client.zrange('reenlock:{order:42}:queue', '0', '-1')).toEqual([`:ga${early.holdId}`]);
  });

  it('are in the queue, and answered the same, where the record is full of them', async () => {
    const lines = Array.from({ length: 40 }, () => stage.deafProcess().line(undefined, { unanswered: 0 }));
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

  it('outlast an acquire that waited for the first connection, and was sent again on the next', async () => {
    const proxy = await TcpProxy.start(stage.server.port);
    const client = stage.connect({ port: proxy.port });
    stage.store = new RedisStore({ client });
    const process = stage.deafProcess();
    const lines = [process.line(undefined, { unanswered: 0 }), process.line(undefined, { unanswered: 0 })];
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

  it('make room when their time is over, and the lock is as before', async () => {
    for (let i = 0; i < 40; i++) {
      const line = stage.deafProcess().line();
      await line.hold();
      await line.release(1);
    }
    const line = stage.deafProcess().line(undefined, { unanswered: 0 });
    await line.hold();
    await line.release();
    expect(await stage.client.getrange(record, 16, 17)).toBe('--');
    expect(await stage.client.strlen(record)).toBeLessThan(1_800);
    expect(await stage.client.keys('*')).toEqual([record]);
  });

  it.each([
    ['in the record', 0],
    ['in the queue', 1],
  ])(
    'are there for longer than an hour where that was asked for, %s, whoever has the key meanwhile',
    async (_, unanswered) => {
      const dayMs = 86_400_000;
      const line = stage.deafProcess().line(undefined, { unanswered });
      await line.hold();
      await line.release(dayMs);
      const lasts = async () => expect(await stage.client.pttl(record)).toBeGreaterThan(dayMs - 600_000);
      await lasts();
      for (const tombstoneMs of [0, longMs]) {
        const next = stage.deafProcess().line(undefined, { unanswered: 0 });
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

  it('for longer than an hour cost a lock its quick path no longer than that lasts', async () => {
    const line = stage.deafProcess().line(undefined, { unanswered: 0 });
    await line.hold();
    await line.release(3_600_100);
    expect(await stage.client.getrange(record, 16, 17)).toBe('-l');
    await setTimeout(110);
    const next = stage.deafProcess().line(undefined, { unanswered: 0 });
    await next.hold();
    expect(await stage.client.getrange(record, 16, 17)).toBe('--');
    expect((await line.ask()).status).toBe('cancelled');
  });

  it('are as many as were sent and not answered', async () => {
    const process = stage.deafProcess();
    const lines = Array.from({ length: 3 }, () => process.line('owner', { unanswered: 0 }));
    for (const line of lines) await line.hold();
    await Promise.all(lines.map((line) => line.release(longMs)));
    for (const line of lines) expect((await line.release(longMs)).status).toBe('released');
  });
});
