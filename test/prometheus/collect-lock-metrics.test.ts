import { Gauge, Registry } from 'prom-client';
import { LockConfigError, lock, runInTrace } from 'reenlock';
import { collectLockMetrics } from 'reenlock/prometheus';
import { createTestLocks, type TestLocks } from 'reenlock/testing';
import { recordWarnings } from '../support/warnings.ts';

const warnings = recordWarnings();

describe('collectLockMetrics', () => {
  let locks: TestLocks;
  let registry: Registry;
  beforeEach(() => {
    locks = createTestLocks({ clock: 'manual' });
    registry = new Registry();
  });
  afterEach(() => locks.end());

  const lines = async (): Promise<string[]> =>
    (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));

  it('collectLockMetrics reports how acquires ended, how long locks were held, and what is held and waited for now', async () => {
    collectLockMetrics(locks, { registry, buckets: { acquire: [1], hold: [1] } });
    const hold = await locks.holdAs('one', 'order:1', { category: 'orders' });
    const waiting = runInTrace(() => lock.run('order:1', () => 1, { category: 'orders' }), { locks });
    await locks.whenWaiting('order:1', 1, { category: 'orders' });
    await locks.clock.advance(500);
    expect(await lines()).toEqual(
      expect.arrayContaining([
        'reenlock_holds{lock="orders"} 1',
        'reenlock_waiters{lock="orders"} 1',
        'reenlock_oldest_hold_seconds{lock="orders"} 0.5',
        'reenlock_oldest_wait_seconds{lock="orders"} 0.5',
      ]),
    );
    await hold.release();
    await waiting;
    locks.failNext('acquire', new Error('down'));
    await runInTrace(() => lock.run('k', () => 1), { locks }).catch(() => {});
    expect((await lines()).filter((line) => !/outcome="(deadlock|lost)"/.test(line))).toEqual([
      'reenlock_acquire_duration_seconds_bucket{le="1",lock="orders",mode="write",outcome="granted"} 2',
      'reenlock_acquire_duration_seconds_bucket{le="+Inf",lock="orders",mode="write",outcome="granted"} 2',
      'reenlock_acquire_duration_seconds_sum{lock="orders",mode="write",outcome="granted"} 0.5',
      'reenlock_acquire_duration_seconds_count{lock="orders",mode="write",outcome="granted"} 2',
      'reenlock_acquire_duration_seconds_bucket{le="1",lock="default",mode="write",outcome="refused"} 1',
      'reenlock_acquire_duration_seconds_bucket{le="+Inf",lock="default",mode="write",outcome="refused"} 1',
      'reenlock_acquire_duration_seconds_sum{lock="default",mode="write",outcome="refused"} 0',
      'reenlock_acquire_duration_seconds_count{lock="default",mode="write",outcome="refused"} 1',
      'reenlock_hold_duration_seconds_bucket{le="1",lock="orders",mode="write",outcome="released"} 2',
      'reenlock_hold_duration_seconds_bucket{le="+Inf",lock="orders",mode="write",outcome="released"} 2',
      'reenlock_hold_duration_seconds_sum{lock="orders",mode="write",outcome="released"} 0.5',
      'reenlock_hold_duration_seconds_count{lock="orders",mode="write",outcome="released"} 2',
      'reenlock_store_errors_total{operation="acquire",outcome="unknown"} 1',
      'reenlock_store_down 0',
      'reenlock_guard_failed_open_total 0',
      'reenlock_overlaps_total{lock="orders"} 0',
    ]);
  });

  it('collectLockMetrics reports that the store is down, from the first call that finds no server until one gets a reply', async () => {
    collectLockMetrics(locks, { registry });
    const isDown = async () => (await lines()).filter((line) => line.startsWith('reenlock_store_down'));
    expect(await isDown()).toEqual(['reenlock_store_down 0']);
    const noServer = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    // A failed acquire is released, since it may have been granted.
    for (const operation of ['acquire', 'release'] as const) locks.failNext(operation, noServer);
    await runInTrace(() => lock.run('k', () => 1), { locks }).catch(() => {});
    expect(await isDown()).toEqual(['reenlock_store_down 1']);
    await runInTrace(() => lock.run('k', () => 1), { locks });
    expect(await isDown()).toEqual(['reenlock_store_down 0']);
  });

  it('collectLockMetrics reports from the first grant on that no hold was lost and no deadlock was closed', async () => {
    const zeros = async () => (await lines()).filter((line) => /_count.*outcome="(deadlock|lost)"/.test(line));
    collectLockMetrics(locks, { registry });
    expect(await zeros()).toEqual([]);
    const lost = await locks.holdAs('one', 'k', { leaseMs: 1_000, renew: false });
    expect(await zeros()).toEqual([
      'reenlock_acquire_duration_seconds_count{lock="default",mode="write",outcome="deadlock"} 0',
      'reenlock_hold_duration_seconds_count{lock="default",mode="write",outcome="lost"} 0',
    ]);
    await locks.clock.advance(1_000);
    expect(lost.isHeld()).toBe(false);
    await locks.holdAs('two', 'k');
    expect((await zeros()).at(-1)).toBe(
      'reenlock_hold_duration_seconds_count{lock="default",mode="write",outcome="lost"} 1',
    );
  });

  it('collectLockMetrics counts each grant alongside the hold of another job with the same bare trace id', async () => {
    collectLockMetrics(locks, { registry });
    const overlaps = async () => (await lines()).filter((line) => line.startsWith('reenlock_overlaps'));
    await locks.holdAs('one', 'k');
    expect(await overlaps()).toEqual(['reenlock_overlaps_total{lock="default"} 0']);
    await runInTrace(() => lock.run('k', () => 1), { locks, traceId: 'one' });
    expect(await overlaps()).toEqual(['reenlock_overlaps_total{lock="default"} 1']);
  });

  it('collectLockMetrics takes its metrics out of the registry again, so that they can be collected anew', async () => {
    const stop = collectLockMetrics(locks, { registry, prefix: 'my_' });
    expect(registry.getMetricsAsArray().map(({ name }) => name)).toContain('my_holds');
    stop();
    expect(registry.getMetricsAsArray()).toEqual([]);
    await locks.holdAs('one', 'k');
    collectLockMetrics(locks, { registry, prefix: 'my_' })();
  });

  it('A second collectLockMetrics on one registry is refused, says what to do, and changes nothing', async () => {
    collectLockMetrics(locks, { registry });
    await locks.holdAs('one', 'k');
    const before = await lines();
    const again = () => collectLockMetrics(locks, { registry });
    expect(again).toThrow(LockConfigError);
    expect(again).toThrow(
      'Expected a registry without the metrics of `collectLockMetrics`, got one that has `reenlock_acquire_duration_seconds`: for the same `Locks`, first call the function that the earlier call returned; for another, set its `prefix` or `registry`',
    );
    expect(await lines()).toEqual(before);
    collectLockMetrics(locks, { registry, prefix: 'other_' })();
    expect(await lines()).toEqual(before);
  });

  it('collectLockMetrics registers nothing if the application has a metric of one of its names', () => {
    const own = new Gauge({ name: 'reenlock_overlaps_total', help: 'ours', registers: [registry] });
    expect(() => collectLockMetrics(locks, { registry })).toThrow('got one that has `reenlock_overlaps_total`');
    expect(registry.getMetricsAsArray()).toEqual([own]);
  });

  it('A stop that is called again does not remove the metrics of a later call', async () => {
    const stop = collectLockMetrics(locks, { registry });
    stop();
    collectLockMetrics(locks, { registry });
    stop();
    expect(await lines()).toContain('reenlock_store_down 0');
  });

  it('collectLockMetrics uses the application’s names of locks, and counts the names beyond 100 as other', async () => {
    let n = 0;
    collectLockMetrics(locks, { registry, lockName: () => `name-${n++}` });
    for (let key = 1; key <= 102; key++) await locks.holdAs('one', key);
    const acquired = 'reenlock_acquire_duration_seconds_count';
    const counts = (await lines()).filter((line) => line.startsWith(acquired) && line.includes('granted'));
    expect([counts.length, counts.at(-1)]).toEqual([101, `${acquired}{lock="other",mode="write",outcome="granted"} 2`]);
    expect(warnings().map(({ message }) => message)).toEqual([expect.stringContaining('100 names')]);
  });

  it.each([
    ['a registry that is none', { registry: {} }, 'Expected `registry` to be a registry of prom-client'],
    ['a prefix that no metric may have', { prefix: 'a-b' }, 'Expected `prefix` to be the beginning of a metric name'],
    ['an unknown option', { name: 'x' }, 'Expected the options of collectLockMetrics to be among'],
  ])('collectLockMetrics refuses %s', (_, options, message) => {
    expect(() => collectLockMetrics(locks, options as never)).toThrow(message);
  });
});
