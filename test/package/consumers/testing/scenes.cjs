// The same tests for each runner: what it is, and its fake timers.
const assert = require('node:assert/strict');
const { runInTrace } = require('reenlock');
const { configureTestLocks } = require('reenlock/testing');
const { ship } = require('./stock.cjs');

exports.describeKit = ({ test, beforeEach, afterEach }, { use, advance, end }) => {
  let locks;
  beforeEach(() => {
    locks = configureTestLocks();
  });
  afterEach(async () => {
    end();
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
    use();
    const refused = runInTrace(() => ship('42')).catch((error) => error);
    for (let round = 0; round < 20; round++) await Promise.resolve();
    advance(60_000);
    assert.equal((await refused).code, 'ERR_LOCK_TIMEOUT');
  });
};
