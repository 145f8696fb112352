import type { LockStats } from '../core/index.ts';

/** A gauge of a process, with its names in the two metrics libraries. */
export interface LockGauge {
  /** Its name for OpenTelemetry, behind `reenlock.`. */
  readonly otel: string;
  /** Its name for Prometheus, behind the prefix. */
  readonly prometheus: string;
  readonly unit: string;
  readonly help: string;
  readonly read: (stats: LockStats) => number;
}

/** The gauges that are read from `locks.stats()` when metrics are collected. */
export const lockGauges: readonly LockGauge[] = [
  {
    otel: 'holds',
    prometheus: 'holds',
    unit: '{hold}',
    help: 'Locks that this process holds',
    read: (stats) => stats.holds,
  },
  {
    otel: 'waiters',
    prometheus: 'waiters',
    unit: '{acquire}',
    help: 'Acquires of this process that wait',
    read: (stats) => stats.waiters,
  },
  {
    otel: 'hold.age.max',
    prometheus: 'oldest_hold_seconds',
    unit: 's',
    help: 'Age of the oldest hold of this process',
    read: (stats) => stats.oldestHoldMs / 1000,
  },
  {
    otel: 'wait.age.max',
    prometheus: 'oldest_wait_seconds',
    unit: 's',
    help: 'Age of the oldest wait of this process',
    read: (stats) => stats.oldestWaitMs / 1000,
  },
];

/** The descriptions of the histograms and counters. */
export const help = {
  acquires: 'How long acquires took that were no local re-entry',
  holds: 'How long locks were held',
  storeErrors: 'Store calls that failed',
  storeDown: 'Whether the store can not be reached: 1 in an outage, else 0',
  failedOpen: 'Requests that a guard let in without the lock, because the store failed',
  overlaps: 'Grants of a key that another request or job of the same bare trace id held',
  refusedHeaders: 'Trace headers that were not adopted',
} as const;
