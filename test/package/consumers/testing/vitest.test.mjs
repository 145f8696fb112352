import { runInTrace } from 'reenlock';
import { configureTestLocks } from 'reenlock/testing';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ship } from './stock.cjs';

let locks;
beforeEach(() => {
  locks = configureTestLocks();
});
afterEach(async () => {
  vi.useRealTimers();
  await locks.end();
});

test('waits for another request', async () => {
  const hold = await locks.holdAs('other', 'order:42');
  const shipped = runInTrace(() => ship('42'));
  await locks.whenWaiting('order:42');
  await hold.release();
  expect(await shipped).toBeGreaterThan(hold.fence);
});

test('times out under fake timers, advanced synchronously', async () => {
  await locks.holdAs('other', 'order:42');
  vi.useFakeTimers();
  const refused = runInTrace(() => ship('42')).catch((error) => error);
  for (let round = 0; round < 20; round++) await Promise.resolve();
  vi.advanceTimersByTime(60_000);
  expect((await refused).code).toBe('ERR_LOCK_TIMEOUT');
});
