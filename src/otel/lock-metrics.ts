import type { Meter } from '@opentelemetry/api';
import type { LockStats, Locks } from '../core/index.ts';
import type { LockNames } from '../metrics/lock-names.ts';
import { help, lockGauges } from '../metrics/metric-table.ts';
import { acquireBuckets, holdBuckets, observeLocks } from '../metrics/observe-locks.ts';
import { statsByName } from '../metrics/stats-by-name.ts';

/** Records metrics of a `Locks`. Returns a function that stops this. */
export function recordLockMetrics(meter: Meter, locks: Locks, names: LockNames): () => void {
  const histogram = (name: string, description: string, buckets: readonly number[]) =>
    meter.createHistogram(`reenlock.${name}`, {
      description,
      unit: 's',
      advice: { explicitBucketBoundaries: [...buckets] },
    });
  const counter = (name: string, description: string, unit: string) =>
    meter.createCounter(`reenlock.${name}`, { description, unit });

  const acquires = histogram('acquire.duration', help.acquires, acquireBuckets);
  const holds = histogram('hold.duration', help.holds, holdBuckets);
  const storeErrors = counter('store.errors', help.storeErrors, '{call}');
  const storeDown = meter.createGauge('reenlock.store.down', { description: help.storeDown, unit: '1' });
  const failedOpen = counter('guard.failed_open', help.failedOpen, '{request}');
  const overlaps = counter('overlaps', help.overlaps, '{hold}');
  const refusedHeaders = counter('trace_header.refused', help.refusedHeaders, '{header}');

  const stopObserving = observeLocks(locks, names, {
    onAcquire: (seconds, labels) => acquires.record(seconds, { ...labels }),
    onHold: (seconds, labels) => holds.record(seconds, { ...labels }),
    onStoreError: (labels) => storeErrors.add(1, labels),
    onStoreDown: (isDown) => storeDown.record(Number(isDown)),
    onFailedOpen: () => failedOpen.add(1),
    onOverlap: (labels) => overlaps.add(1, labels),
    onHeaderRefused: (labels) => refusedHeaders.add(1, labels),
  });
  const stopGauges = observeGauges(meter, locks, names);
  return () => {
    stopObserving();
    stopGauges();
  };
}

/** Gauges that read `locks.stats()` when they are collected. */
function observeGauges(meter: Meter, locks: Locks, names: LockNames): () => void {
  const observed = lockGauges.map(
    ({ otel, help: description, unit, read }) =>
      [meter.createObservableGauge(`reenlock.${otel}`, { description, unit }), read] as const,
  );
  const all = observed.map(([gauge]) => gauge);
  // The SDK repeats the last value of a lock that is no longer observed: report a zero.
  const known = new Set<string>();
  const observe: Parameters<Meter['addBatchObservableCallback']>[0] = (result) => {
    const byName = statsByName(locks, names);
    for (const lock of byName.keys()) known.add(lock);
    for (const lock of known) {
      for (const [gauge, read] of observed) result.observe(gauge, read(byName.get(lock) ?? nothing), { lock });
    }
  };
  meter.addBatchObservableCallback(observe, all);
  return () => meter.removeBatchObservableCallback(observe, all);
}

const nothing: LockStats = { holds: 0, waiters: 0, oldestHoldMs: 0, oldestWaitMs: 0 };
