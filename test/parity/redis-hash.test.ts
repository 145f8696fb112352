import { getLock, LockAbortedError, LockNotHeldError, LocksClosedError, LockTimeoutError, lock } from 'reenlock';
import { shortMs } from '../../src/testing/contract/harness.ts';
import { key } from '../../src/testing/contract/stage.ts';
import { outcomeOf } from '../support/stores/set-up.ts';
import { briefMs, describeStores, longMs } from './services.ts';

describeStores('a Redis hash lock with release notification', ({ stage, service }) => {
  const fixed = { leaseMs: briefMs, renew: false } as const;
  const owners = async () => (await stage.inspect()).holds.map(({ owner }) => owner);
  const waiters = async () => (await stage.inspect()).waiters.map(({ owner }) => owner);

  it('`tryLock()` at once', async () => {
    const [one, two] = [service(), service()];
    await one.job('one', async () => {
      const hold = await lock.tryAcquire(key);
      expect(await two.job('two', () => lock.tryAcquire(key))).toBeNull();
      // It left nothing that could be granted later.
      expect([await owners(), await waiters()]).toEqual([['one'], []]);
      await hold?.release();
      await two.job('two', async () => expect((await lock.tryAcquire(key))?.isHeld()).toBe(true));
    });
  });

  it('`tryLock(wait, lease, unit)`: waits at most `wait`, holds at most `lease`', async () => {
    const [one, two] = [service(), service()];
    await one.job('one', () =>
      lock.run(key, async () => {
        const outcome = outcomeOf(two.job('two', () => lock.acquire(key, { ...fixed, waitMs: 20 })));
        await outcome.settled;
        expect(outcome.error).toBeInstanceOf(LockTimeoutError);
        // A timer may be a millisecond early.
        expect((outcome.error as LockTimeoutError).waitedMs).toBeGreaterThan(15);
      }),
    );
    await one.job('one', async () => {
      const hold = await lock.acquire(key, { ...fixed, waitMs: 20 });
      // Nobody releases it: it is the lease that ends.
      const next = await two.job('two', async () => (await lock.acquire(key)).fence);
      expect(next).toBeGreaterThan(hold.fence);
      expect(hold.isHeld()).toBe(false);
    });
  });

  it('owner = client id + thread id in a hash, value = re-entry count', async () => {
    const [one, two] = [service(), service()];
    await one.job('trace', () =>
      lock.run(key, async (outer) => {
        await lock.run(key, () => expect(getLock(key).holdCount()).toBe(2));
        // The same owner in another service is a hold of its own, with the same fence.
        await two.job('trace', () =>
          lock.run(key, async ({ fence }) => {
            expect(fence).toBe(outer.fence);
            expect(await owners()).toEqual(['trace', 'trace']);
          }),
        );
        expect(await owners()).toEqual(['trace']);
      }),
    );
    // A command that was sent twice counts once.
    const sent = stage.deafProcess().line('trace');
    await sent.hold();
    await sent.copy.hold();
    expect(await owners()).toEqual(['trace']);
    expect((await sent.copy.release(longMs)).status).toBe('released');
    expect((await sent.copy.release(longMs)).status).toBe('released');
    expect(await owners()).toEqual([]);
  });

  it('unlock only by the owner; by another: nothing happens', async () => {
    const [one, two] = [service(), service()];
    await one.job('one', () =>
      lock.run(key, async (hold) => {
        await expect(two.job('two', () => lock.release(key))).rejects.toThrow(LockNotHeldError);
        // Nor by another scope of the same owner, which has no hold of its own.
        await expect(two.job('one', () => lock.release(key))).rejects.toThrow(LockNotHeldError);
        expect((await stage.inspect()).holds).toMatchObject([{ owner: 'one', fence: hold.fence }]);
      }),
    );
  });

  it("release publishes on the lock's channel, waiters wake and try again; one listener a channel", async () => {
    // No poll may do it.
    const [one, two] = [service({ pollMs: longMs }), service({ pollMs: longMs })];
    const order: string[] = [];
    let release: () => Promise<void> = async () => {};
    await one.job('first', async () => {
      const hold = await lock.acquire(key);
      const jobs: Promise<void>[] = [];
      for (const [index, waiter] of [two, one, two, one].entries()) {
        const work = async () => {
          const own = await lock.acquire(key);
          order.push(`job-${index}`);
          await new Promise<void>((resolve) => {
            release = () => own.release().then(resolve);
          });
        };
        jobs.push(waiter.job(`job-${index}`, work));
        await waiter.until('waiting', Math.floor(index / 2) + 1);
      }
      await hold.release();
      for (let turn = 1; turn <= 4; turn++) {
        // The first grant of the first service was the first holder's.
        if (turn % 2 === 1) await two.until('granted', (turn + 1) / 2);
        else await one.until('granted', turn / 2 + 1);
        // One is woken, and the others stand where they stood.
        expect([await owners(), (await waiters()).length]).toEqual([[`job-${turn - 1}`], 4 - turn]);
        await release();
      }
      await Promise.all(jobs);
    });
    expect(order).toEqual(['job-0', 'job-1', 'job-2', 'job-3']);
  });

  it('subscription undone in `finally`, acquired or not', async () => {
    const [one, two] = [service(), service()];
    const controller = new AbortController();
    await one.job('one', async () => {
      const hold = await lock.acquire(key);
      const timeout = two.job('late', () => lock.acquire(key, { waitMs: 20 }));
      await expect(timeout).rejects.toThrow(LockTimeoutError);
      const aborted = outcomeOf(two.job('aborted', () => lock.acquire(key, { signal: controller.signal })));
      await two.until('waiting', 2);
      controller.abort();
      await aborted.settled;
      expect(aborted.error).toBeInstanceOf(LockAbortedError);
      const closed = outcomeOf(two.job('closed', () => lock.acquire(key)));
      await two.until('waiting', 3);
      await two.locks.close();
      await closed.settled;
      expect(closed.error).toBeInstanceOf(LocksClosedError);
      expect([await owners(), await waiters()]).toEqual([['one'], []]);

      // A grant that is on its way to somebody who gives up: it is returned.
      const last = new AbortController();
      const gone = outcomeOf(one.job('gone', () => lock.acquire(key, { signal: last.signal })));
      await one.until('waiting');
      const released = hold.release();
      last.abort();
      await Promise.all([released, gone.settled]);
      await one.job('next', () => lock.run(key, async () => expect(await owners()).toEqual(['next'])));
    });
    expect([await owners(), await waiters()]).toEqual([[], []]);
  });

  it('lock expires when its client dies', async () => {
    const dead = stage.deafProcess();
    const { fence, endMs } = await dead.line().hold({ leaseMs: shortMs });
    const one = service();
    await one.job('one', async () => {
      const hold = await lock.acquire(key);
      expect(hold.fence).toBeGreaterThan(fence);
      // By the store's clock: a fence is its time in microseconds.
      expect(hold.fence).toBeGreaterThanOrEqual(endMs * 1_000);
      // Nor does it cost anybody a lease that a dead client stands in the queue before them.
      await dead.line('dead').wait();
      const waiting = one.seen('waiting');
      const next = one.job('next', () => lock.run(key, owners));
      await one.until('waiting', waiting + 1);
      await hold.release();
      expect(await next).toEqual(['next']);
    });
  });

  it('factory hands out locks by key with one client id', async () => {
    const one = service();
    const kept = getLock(key);
    await one.job('one', () =>
      kept.run(async () => {
        expect(getLock(key)).not.toBe(kept);
        expect(getLock(key).isHeld()).toBe(true);
        // They bind nothing, wherever they were made: the same object is another owner's in another job.
        const made = getLock(key);
        expect(made.isHeld()).toBe(true);
        await one.job('two', async () => {
          for (const each of [kept, made]) {
            expect([each.isHeld(), each.holdCount()]).toEqual([false, 0]);
            expect(await each.tryAcquire()).toBeNull();
          }
        });
        expect(await getLock('another').tryAcquire()).not.toBeNull();
      }),
    );
  });
});
