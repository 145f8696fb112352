import { getLock, LockAbortedError, LockLostError, LockNotHeldError, LockTimeoutError, lock } from 'reenlock';
import { shortMs } from '../../src/testing/contract/harness.ts';
import { key } from '../../src/testing/contract/stage.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { outcomeOf } from '../support/stores/set-up.ts';
import { until } from '../support/until.ts';
import { briefMs, describeStores, longMs, type Service } from './services.ts';

/** Renewed in time however busy the machine is, and not for long. */
const renewedMs = 3_000;

describeStores("Redisson's RLock", ({ stage, service }) => {
  const fixed = { leaseMs: briefMs, renew: false } as const;
  const owners = async () => (await stage.inspect()).holds.map(({ owner }) => owner);
  const waiters = async () => (await stage.inspect()).waiters.map(({ owner }) => owner);
  const lost = (signal: AbortSignal) =>
    new Promise<unknown>((resolve) => {
      if (signal.aborted) resolve(signal.reason);
      else signal.addEventListener('abort', () => resolve(signal.reason), { once: true });
    });

  const renewalsOf = (one: Service) => jest.spyOn(one.locks.settings.store!, 'renew');

  /** A fixed lease passes, by the store's clock and by this machine's. */
  async function elapse(one: Service, leaseMs: number): Promise<void> {
    await one.job('elapse', async () => {
      const hold = await lock.acquire('another', { leaseMs, renew: false });
      await lost(hold.signal);
      expect(hold.isHeld()).toBe(false);
    });
  }

  it('`lock()` waits for ever', async () => {
    const [one, two] = [service(), service({ waitMs: 20, pollMs: longMs })];
    await one.job('one', async () => {
      const hold = await lock.acquire(key);
      const endless = two.job('two', () => lock.run(key, owners, { waitMs: Number.POSITIVE_INFINITY }));
      await two.until('waiting');
      await expect(two.job('three', () => lock.acquire(key))).rejects.toThrow(LockTimeoutError);
      // It leaves the queue in the background.
      await until(async () => (await waiters()).join() === 'two');
      await hold.release();
      expect(await endless).toEqual(['two']);
    });
  });

  it('`lock(lease)`: no watchdog, forced expiry after `lease` whatever the work does', async () => {
    const [one, two] = [service(), service()];
    await one.job('one', async () => {
      const hold = await lock.acquire(key, fixed);
      const told = lost(hold.signal);
      await two.job('two', () => lock.run(key, ({ fence }) => expect(fence).toBeGreaterThan(hold.fence)));
      expect(await told).toBeInstanceOf(LockLostError);
      expect(() => hold.assertHeld()).toThrow(LockLostError);
      expect(one.seen('renewed')).toBe(0);
    });
  });

  it('`lockInterruptibly`', async () => {
    const [one, two] = [service(), service()];
    await one.job('one', () =>
      lock.run(key, async () => {
        const controller = new AbortController();
        const outcome = outcomeOf(two.job('two', () => lock.acquire(key, { signal: controller.signal })));
        await two.until('waiting');
        controller.abort();
        await outcome.settled;
        expect(outcome.error).toBeInstanceOf(LockAbortedError);
        await two.locks.close();
        expect(await waiters()).toEqual([]);
      }),
    );
  });

  it('`tryLock(wait)`, `tryLock(wait, lease)`', async () => {
    // Who is in the queue stays there for minutes, unless it leaves.
    const [one, two] = [service(), service({ pollMs: longMs })];
    await one.job('one', async () => {
      const hold = await lock.acquire(key);
      for (const options of [{ waitMs: 20 }, { waitMs: 20, ...fixed }]) {
        const outcome = outcomeOf(two.job('two', () => lock.acquire(key, options)));
        await outcome.settled;
        expect(outcome.error).toBeInstanceOf(LockTimeoutError);
      }
      await until(async () => (await waiters()).length === 0);
      await hold.release();
      // Never a ghost waiter, who would have it now.
      expect([await owners(), await waiters()]).toEqual([[], []]);
      const last = await two.job('two', () =>
        lock.run(key, ({ fence }) => fence, { waitMs: 20, leaseMs: longMs, renew: false }),
      );
      expect(last).toBeGreaterThan(hold.fence);
    });
  });

  it("watchdog: a lease that is renewed every third; it stops at the last unlock, at the owner's end, or when the lock is gone", async () => {
    const clock = new ManualClock();
    const slow = service({}, clock);
    const renewals = renewalsOf(slow);
    await slow.job('thirds', async () => {
      const hold = await lock.acquire(key, { leaseMs: 30_000 });
      for (let sent = 0; sent < 3; sent++) {
        // The local deadline is a little early.
        expect(Math.round(hold.remainingMs() / 1_000)).toBe(30);
        await clock.advance(hold.remainingMs() / 3 - 1);
        expect(renewals).toHaveBeenCalledTimes(sent);
        await clock.advance(2);
        expect(renewals).toHaveBeenCalledTimes(sent + 1);
        await slow.until('renewed', sent + 1);
      }
    });
    renewals.mockRestore();

    const one = service({ leaseMs: renewedMs });
    const renewed = async (fence: number) => {
      await one.until('renewed', one.seen('renewed') + 4);
      expect((await stage.inspect()).holds).toMatchObject([{ fence }]);
    };
    const stopped = async () => {
      const renewals = one.seen('renewed');
      // The next one would be due after a third.
      await elapse(one, renewedMs / 2);
      expect(one.seen('renewed')).toBe(renewals);
      expect(await owners()).toEqual([]);
    };
    await one.job('unlocks', async () => {
      const hold = await lock.acquire(key);
      await renewed(hold.fence);
      expect(hold.isHeld()).toBe(true);
      await hold.release();
      await stopped();
    });
    await one.job('end', async () => {
      await lock.acquire(key);
      await one.until('renewed', one.seen('renewed') + 1);
    });
    await one.until('released', 2);
    await stopped();
    await one.job('gone', async () => {
      const hold = await lock.acquire(key);
      const told = lost(hold.signal);
      await stage.store.forceRelease(key, hold.fence);
      expect(await told).toBeInstanceOf(LockLostError);
      await stopped();
    });
  });

  it('re-entry raises the count and refreshes the lease', async () => {
    const one = service();
    await one.job('one', async () => {
      const outer = await lock.acquire(key, { leaseMs: 10_000, renew: false });
      const inner = await lock.acquire(key, { leaseMs: 1_000, renew: false });
      expect(getLock(key).holdCount()).toBe(2);
      // The inner one never shortens the outer one's.
      expect(outer.remainingMs()).toBeGreaterThan(1_000);
      const longer = await lock.acquire(key, { leaseMs: longMs, renew: false });
      await one.until('renewed');
      expect(outer.remainingMs()).toBeGreaterThan(10_000);
      await Promise.all([inner.release(), longer.release()]);
      expect(getLock(key).holdCount()).toBe(1);
      expect(outer.remainingMs()).toBeGreaterThan(10_000);
      await outer.release();
      // Nor does it when it is renewed: as long as the outermost one asked for.
      const renewals = renewalsOf(one);
      await lock.acquire(key, { leaseMs: renewedMs });
      await lock.acquire(key, { leaseMs: renewedMs / 3 });
      await one.until('renewed', one.seen('renewed') + 1);
      expect(renewals.mock.calls.map(([, terms]) => terms.leaseMs)).toContain(renewedMs);
      renewals.mockRestore();
    });
  });

  it("waiter sleeps min(holder's remaining lease, own remaining wait), woken by the release message", async () => {
    // Neither may be a matter of polls as such.
    const [one, two] = [service({ pollMs: longMs }), service({ pollMs: longMs })];
    await one.job('one', async () => {
      const hold = await lock.acquire(key);
      const woken = two.job('two', () => lock.run(key, owners));
      await two.until('waiting');
      await hold.release();
      expect(await woken).toEqual(['two']);
    });
    const dead = await stage.deafProcess().line().hold({ leaseMs: shortMs });
    await two.job('three', () => lock.run(key, ({ fence }) => expect(fence).toBeGreaterThan(dead.fence)));
    await one.job('one', () =>
      lock.run(key, async () => {
        await expect(two.job('four', () => lock.acquire(key, { waitMs: 20 }))).rejects.toThrow(LockTimeoutError);
      }),
    );
  });

  it('unlock by a non-owner throws; count > 0 after unlock keeps the lock and refreshes its lease; 0 deletes and publishes', async () => {
    const [one, two] = [service({ pollMs: longMs }), service({ pollMs: longMs })];
    await one.job('one', async () => {
      const outer = await lock.acquire(key);
      const inner = await lock.acquire(key);
      await expect(two.job('two', () => lock.release(key))).rejects.toThrow(LockNotHeldError);
      const next = two.job('two', () => lock.run(key, owners));
      await two.until('waiting');
      await inner.release();
      await inner.release();
      expect([getLock(key).holdCount(), outer.isHeld(), await owners()]).toEqual([1, true, ['one']]);
      await lock.release(key);
      expect(await next).toEqual(['two']);
      await expect(lock.release(key)).rejects.toThrow(LockNotHeldError);
    });
  });

  it('`forceUnlock` deletes all holders, and wakes waiters', async () => {
    const [one, two] = [service({ pollMs: longMs }), service({ pollMs: longMs })];
    await one.job('one', async () => {
      // No renewal tells its holder.
      const hold = await lock.acquire(key, { leaseMs: longMs, renew: false });
      const told = lost(hold.signal);
      const next = two.job('two', () => lock.run(key, ({ fence }) => expect(fence).toBeGreaterThan(hold.fence)));
      await two.until('waiting');
      // Whoever calls it; it needs no owner.
      expect(await two.job('operator', () => getLock(key).forceRelease())).toBe(true);
      await next;
      expect(await told).toBeInstanceOf(LockLostError);
      await expect(hold.release()).rejects.toThrow(LockLostError);
      expect(await two.job('operator', () => getLock(key).forceRelease())).toBe(false);
    });
  });

  it('client crash: free after the lease', async () => {
    const { fence, endMs } = await stage.deafProcess().line('crashed').hold({ leaseMs: shortMs });
    const one = service();
    const next = await one.job('one', () => lock.run(key, (hold) => hold.fence));
    expect(next).toBeGreaterThan(fence);
    expect(next).toBeGreaterThanOrEqual(endMs * 1_000);
  });
});
