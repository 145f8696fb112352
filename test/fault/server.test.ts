import { until } from '../support/until.ts';
import type { Client, Refusal, RemoteHold } from './crew.ts';
import { violationsOf } from './history.ts';
import { Lab } from './lab.ts';
import { isLong, printSeed, seed } from './seed.ts';

printSeed('server');

const key = 'order:42';
const workMs = isLong ? 10_000 : 1_500;

async function inLab(args: readonly string[], play: (lab: Lab) => Promise<unknown>): Promise<void> {
  const lab = await Lab.start(args);
  try {
    await play(lab);
  } finally {
    await lab.stop();
  }
}

const refusalOf = (acquired: Promise<RemoteHold>): Promise<Refusal> =>
  acquired.then(
    () => ({ code: 'granted' }),
    (refusal: Refusal) => refusal,
  );

const waiting = (lab: Lab, count: number) => until(async () => (await lab.waiters(key)).length === count);

describe('A server that is killed and starts again', () => {
  it('[server-01] With appendfsync always, the server knows every hold: one owner at a time throughout', () =>
    inLab(['--appendonly', 'yes', '--appendfsync', 'always'], async (lab) => {
      const all = await lab.clients(2, { pollMs: 100 });
      for (const client of all) client.disturbed();
      const work = all.map((client, n) => client.work([key, 'order:43'], 3, workMs, seed + n));
      await new Promise((resolve) => setTimeout(resolve, workMs / 3));
      await lab.server.kill();
      await lab.server.restart();
      expect(Math.min(...(await Promise.all(work)))).toBeGreaterThan(0);
      await lab.end({ fifo: false });
    }));

  it('[server-02] Without persistence, the server has forgotten the holder, which learns of it at its next renewal; the fence rises all the same', () =>
    inLab([], async (lab) => {
      const [a, b] = (await lab.clients(2, { pollMs: 100 })) as [Client, Client];
      const first = await a.acquire(key, { leaseMs: 5_000 });
      const second = b.acquire(key);
      await waiting(lab, 1);
      await lab.server.kill();
      await lab.server.restart();
      // Not promised: two owners, until the first one asks. The signal and the fence tell.
      const next = await second;
      expect(next.fence).toBeGreaterThan(first.fence);
      await until(async () => (await first.look()).isAborted);
      expect((await first.look()).events).toContain('lost');
      await expect(first.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
      expect(await next.look()).toMatchObject({ isHeld: true, isAborted: false });
      await next.release();
      expect(violationsOf(lab.history).filter(({ rule }) => rule !== 'overlap')).toEqual([]);
    }));

  it('[server-03] Without persistence, every waiter is queued again, and served', () =>
    inLab([], async (lab) => {
      const [a, b] = (await lab.clients(2, { pollMs: 100 })) as [Client, Client];
      for (const client of [a, b]) client.disturbed();
      await a.acquire(key, { leaseMs: 60_000 });
      const waiters = Array.from({ length: 8 }, () => b.acquire(key));
      await waiting(lab, 8);
      await a.kill();
      await lab.server.kill();
      await lab.server.restart();
      // The dead one's lease is gone with the rest.
      const fences = await Promise.all(
        waiters.map(async (waiter) => {
          const hold = await waiter;
          await hold.release();
          return hold.fence;
        }),
      );
      expect(new Set(fences).size).toBe(8);
      await lab.end({ fifo: false, forgets: true });
    }));
});

describe('[server-04] A server that does not reply', () => {
  it('A server that is stopped for longer than the lease lets nobody in: the holder loses the key by its own clock', () =>
    inLab([], async (lab) => {
      const [a, b] = (await lab.clients(2, { pollMs: 200, storeTimeoutMs: 2_000 })) as [Client, Client];
      const first = await a.acquire(key, { leaseMs: 5_000 });
      const waiter = b.acquire(key);
      await waiting(lab, 1);
      lab.server.pause();
      const refusal = await refusalOf(b.acquire('order:43', { waitMs: 0 }));
      expect(refusal).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown', status: 503 });
      await until(async () => (await first.look()).isAborted);
      lab.server.resume();
      const second = await waiter;
      expect(second.fence).toBeGreaterThan(first.fence);
      await second.release();
      await first.release().catch(() => {});
      await lab.end();
    }));
});

describe('A server that is not what locks need', () => {
  it('[server-07] A server evicts a lock that is held: the holder learns of it at its next renewal, and the next fence is greater', () =>
    inLab(['--maxmemory-policy', 'allkeys-lru'], async (lab) => {
      const [a, b] = (await lab.clients(2, { pollMs: 100 })) as [Client, Client];
      const first = await a.acquire(key, { leaseMs: 1_200 });
      await lab.admin.call('CONFIG', 'SET', 'maxmemory', '1');
      await until(async () => {
        // Eviction is the work of commands.
        await lab.admin.set('more', 'x').catch(() => {});
        return (await lab.admin.exists(`reenlock:{${key}}:lock`)) === 0;
      });
      await lab.admin.call('CONFIG', 'SET', 'maxmemory', '0');
      const second = await b.acquire(key);
      expect(second.fence).toBeGreaterThan(first.fence);
      await until(async () => (await first.look()).isAborted);
      await expect(first.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
      expect((await second.look()).isHeld).toBe(true);
      await second.release();
    }));

  it('[server-09] A server’s clock is set forward: the next one is let in, the holder learns of it at its next renewal, and the fence rises', () =>
    inLab([], async (lab) => {
      const [a, b] = (await lab.clients(2, { pollMs: 100 })) as [Client, Client];
      const first = await a.acquire(key, { leaseMs: 6_000 });
      const waiter = b.acquire(key);
      await waiting(lab, 1);
      // As a clock finds it that was set a minute forward: the lease ended a minute earlier.
      const record = `reenlock:{${key}}:lock`;
      await lab.admin.hset(record, 'ends', Math.floor(first.fence / 1_000) + 6_000 - 60_000);
      const second = await waiter;
      expect(second.fence).toBeGreaterThan(first.fence);
      await until(async () => (await first.look()).isAborted);
      expect((await first.look()).events).toContain('lost');
      await expect(first.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
      expect(await second.look()).toMatchObject({ isHeld: true, isAborted: false });
      await second.release();
      expect(violationsOf(lab.history).filter(({ rule }) => rule !== 'overlap')).toEqual([]);
    }));
});
