import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { runInTrace } from 'reenlock';
import { configureTestLocks } from 'reenlock/testing';
import { ship } from './stock.cjs';

let locks;
beforeEach(() => {
  locks = configureTestLocks();
});
afterEach(async () => {
  mock.timers.reset();
  await locks.end();
});

test('waits for another request', async () => {
  const hold = await locks.holdAs('other', 'order:42');
  const shipped = runInTrace(() => ship('42'));
  await locks.whenWaiting('order:42');
  await hold.release();
  assert.ok((await shipped) > hold.fence);
});

test('times out under fake timers, advanced synchronously', async () => {
  await locks.holdAs('other', 'order:42');
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.now() });
  const refused = runInTrace(() => ship('42')).catch((error) => error);
  for (let round = 0; round < 20; round++) await Promise.resolve();
  mock.timers.tick(60_000);
  assert.equal((await refused).code, 'ERR_LOCK_TIMEOUT');
});
