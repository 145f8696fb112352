import express from 'express';
import { getLock, isLockError, type LockEvents, lock, runInTrace } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import { configureTestLocks, createTestLocks, type TestLocks } from 'reenlock/testing';
import request from 'supertest';

/** The code under test, as an application would have it. */
async function ship(id: string): Promise<number> {
  return getLock(`order:${id}`).run(async (hold) => hold.fence);
}

describe('configureTestLocks', () => {
  let locks: TestLocks;
  beforeEach(() => {
    locks = configureTestLocks();
  });
  afterEach(() => locks.end());

  it('configureTestLocks is used by code that names no Locks, until its end', async () => {
    await runInTrace(() => ship('42'));
    expect(locks.history().map(({ event }) => event)).toEqual(['granted', 'released']);
    expect(locks.history({ clear: true })[0]?.details).toMatchObject({ key: 'order:42' });
    expect(locks.history()).toEqual([]);
  });

  it('A test can be another request that holds the key', async () => {
    const hold = await locks.holdAs('other', 'order:42');
    const shipped = runInTrace(() => ship('42'));
    await locks.whenWaiting('order:42');
    await hold.release();
    expect(await shipped).toBeGreaterThan(hold.fence);
  });

  it('A test that waits for a waiter gets an error if nobody waits in time, which names the locks that there are', async () => {
    const expected = 'Expected 1 to wait for `order:42` within 20 ms, got 0';
    const advice = 'hold the key, then call the code that locks it, without await';
    const waiting = () => locks.whenWaiting('order:42', 1, { timeoutMs: 20 });
    await expect(waiting()).rejects.toThrow(`${expected} (nothing is locked): ${advice}`);
    await locks.holdAs('other', 'order:43', { category: 'orders' });
    const held = '`order:43` of category `orders` held by other';
    await expect(waiting()).rejects.toThrow(`${expected} (${held}): ${advice}`);
  });

  it('A test that waits for a waiter waits in real time, also on fake timers and on a manual clock', async () => {
    const manual = createTestLocks({ clock: 'manual' });
    jest.useFakeTimers();
    try {
      for (const each of [locks, manual]) {
        const waiting = each.whenWaiting('order:42', 2, { timeoutMs: 20 });
        await expect(waiting).rejects.toThrow('Expected 2 to wait for `order:42` within 20 ms, got 0');
      }
      const hold = await locks.holdAs('other', 'order:42');
      const waiting = locks.whenWaiting('order:42');
      jest.advanceTimersByTime(5_000);
      const shipped = runInTrace(() => ship('42'));
      await waiting;
      await hold.release();
      await shipped;
    } finally {
      jest.useRealTimers();
    }
    await manual.end();
  });

  it('A test can wait for a number of waiters, in a category', async () => {
    const hold = await locks.holdAs('other', 7, { category: 'seats' });
    const take = (): Promise<unknown> => runInTrace(() => lock.run(7, () => 1, { category: 'seats' }));
    const both = Promise.all([take(), take()]);
    await locks.whenWaiting(7, 2, { category: 'seats' });
    await hold.release();
    expect(await both).toEqual([1, 1]);
  });

  it.each(Array.from({ length: 16 }, (_, turns) => turns))(
    'A wait that begins while a test looks for it is seen, %i turns later',
    async (turns) => {
      const hold = await locks.holdAs('other', 'order:42');
      const shipped = (async () => {
        for (let turn = 0; turn < turns; turn += 1) await undefined;
        return runInTrace(() => ship('42'));
      })();
      await locks.whenWaiting('order:42');
      await hold.release();
      expect(await shipped).toBeGreaterThan(hold.fence);
    },
  );

  it('A test can take a lock from its holder, which learns of it', async () => {
    await runInTrace(async () => {
      const hold = await lock.acquire('order:42');
      expect(await locks.loseLock('order:42')).toBe(true);
      expect([hold.isHeld(), hold.signal.aborted]).toEqual([false, true]);
      await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    });
    expect(await locks.loseLock('order:42')).toBe(false);
  });

  it('A test can serve a guarded route, which responds with 423 while another request holds the key', async () => {
    const app = express();
    app.use(traceContext());
    app.post(
      '/orders/:id',
      lockOn((req) => `order:${req.params.id}`, { waitMs: 0 }),
      (_req, res) => void res.json({}),
    );
    const hold = await locks.holdAs('other', 'order:42');
    expect((await request(app).post('/orders/42')).status).toBe(423);
    await hold.release();
    expect((await request(app).post('/orders/42')).status).toBe(200);
  });

  it('A test can fail the next calls with the errors and losses that it chooses, in order', async () => {
    const code = (error: unknown): unknown => (isLockError(error) ? error.code : error);
    locks.failNext('acquire', new Error('down'));
    expect(await runInTrace(() => ship('42')).catch(code)).toBe('ERR_LOCK_STORE');
    locks.failNext('acquire', new Error('down'));
    locks.heal();
    expect(await runInTrace(() => ship('42')).catch(code)).toEqual(expect.any(Number));
  });
});

describe('A manual clock', () => {
  let locks: TestLocks;
  beforeEach(() => {
    locks = createTestLocks({ clock: 'manual' });
  });
  afterEach(() => locks.end());

  it('A manual clock ends a wait when the test advances it', async () => {
    await locks.holdAs('other', 'k');
    const refused = runInTrace(() => lock.acquire('k', { waitMs: 5_000 }), { locks }).catch((error: unknown) => error);
    await locks.whenWaiting('k');
    await locks.clock.advance(4_999);
    expect(locks.history().map(({ event }) => event)).not.toContain('timeout');
    await locks.clock.advance(1);
    expect(await refused).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', waitedMs: 5_000 });
    expect(locks.history().find(({ event }) => event === 'timeout')?.atMs).toBe(5_000);
  });

  it.each(['lost-call', 'lost-reply', 'late'] as const)('A manual clock lets a %s time out', async (fault) => {
    locks.failNext('acquire', fault);
    const failed = runInTrace(() => lock.acquire('k'), { locks }).catch((error: unknown) => error);
    await locks.clock.advance(3_000);
    expect(await failed).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
  });

  it.each([
    ['aquire', new Error('down'), /^Expected the operation of failNext to be 'acquire' or .*, got `aquire`/],
    ['acquire', 'lost', /^Expected the fault of failNext to be an Error or 'lost-call' or .*, got `lost`/],
  ])('failNext refuses %s with %s, which would make nothing fail, or in another way', (operation, fault, says) => {
    expect(() => locks.failNext(operation as 'acquire', fault as 'late')).toThrow(says);
  });

  it('A manual clock loses a lock whose renewals fail', async () => {
    const lost: LockEvents['lost'][] = [];
    locks.on('lost', (event) => void lost.push(event));
    await locks.holdAs('other', 'k', { leaseMs: 3_000 });
    for (let n = 0; n < 100; n++) locks.failNext('renew', new Error('down'));
    await locks.clock.advance(3_000);
    expect(lost).toMatchObject([{ key: 'k' }]);
  });
});

describe('end', () => {
  it('end names what the code under test left behind', async () => {
    const locks = createTestLocks();
    let finish = (): void => {};
    const job = runInTrace(
      async () => {
        await lock.acquire('left', { category: 'orders' });
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
      },
      { locks, traceId: 'mine' },
    );
    await expect(locks.end()).rejects.toThrow(
      'Expected no lock at the end of the test, got `left` of category `orders` held by mine: await the work that locks',
    );
    finish();
    await job;
  });

  it('end waits for a release that met a fault, since the tested code has left nothing behind', async () => {
    const locks = createTestLocks({ storeTimeoutMs: 100 });
    locks.failNext('release', 'lost-call');
    await runInTrace(() => lock.run('k', () => undefined), { locks });
    await locks.end();
    expect(locks.history().filter(({ event }) => event === 'released')).toHaveLength(1);
  });

  it('end names a detached hold, and accepts a test that has ended it as it says', async () => {
    const detach = (locks: TestLocks): Promise<unknown> =>
      runInTrace(async () => (await lock.acquire('seat')).detach({ leaseMs: 60_000 }), { locks });
    const left = createTestLocks();
    await detach(left);
    await expect(left.end()).rejects.toThrow(
      /got `seat` held by nobody, as it is detached: .* end a detached hold by `locks\.loseLock\(key\)`$/,
    );
    const ended = createTestLocks();
    await detach(ended);
    expect(await ended.loseLock('seat')).toBe(true);
    await ended.end();
  });

  it('end releases the holds of holdAs, and frees the default for the next test', async () => {
    const first = configureTestLocks();
    await first.holdAs('other', 'k');
    await first.end();
    const second = configureTestLocks();
    await runInTrace(() => lock.run('k', () => undefined));
    expect(second.history()).toHaveLength(2);
    await second.end();
  });
});

describe('createTestLocks', () => {
  it.each([
    [
      'an unknown clock',
      () => createTestLocks({ clock: 'slow' as never }),
      "Expected `clock` to be 'real' or 'manual'",
    ],
    [
      'an option of createLocks with a bad value',
      () => createTestLocks({ storeTimeoutMs: -1 }),
      'Expected `storeTimeoutMs`',
    ],
  ])('createTestLocks refuses %s', (_, create, message) => {
    expect(create).toThrow(message);
  });

  it('createTestLocks refuses to advance a real clock, and names the one to ask for', async () => {
    const locks = createTestLocks();
    await expect(locks.clock.advance(1)).rejects.toThrow("Expected `createTestLocks({ clock: 'manual' })`");
    await locks.end();
  });
});
