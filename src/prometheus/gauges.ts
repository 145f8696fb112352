import type * as PromClient from 'prom-client';
import type { LockStats, Locks } from '../core/index.ts';
import type { LockNames } from '../metrics/lock-names.ts';
import { statsByName } from '../metrics/stats-by-name.ts';

const gauges: readonly (readonly [name: string, help: string, read: (stats: LockStats) => number])[] = [
  ['holds', 'Locks that this process holds', (stats) => stats.holds],
  ['waiters', 'Acquires of this process that wait', (stats) => stats.waiters],
  ['oldest_hold_seconds', 'Age of the oldest hold of this process', (stats) => stats.oldestHoldMs / 1000],
  ['oldest_wait_seconds', 'Age of the oldest wait of this process', (stats) => stats.oldestWaitMs / 1000],
];

/** Gauges that read `locks.stats()` when they are collected. */
export function createGauges(
  { Gauge }: typeof PromClient,
  locks: Locks,
  names: LockNames,
  registry: PromClient.Registry,
  prefix: string,
): PromClient.Gauge<'lock'>[] {
  return gauges.map(
    ([name, help, read]) =>
      new Gauge({
        registers: [registry],
        name: `${prefix}${name}`,
        help,
        labelNames: ['lock'],
        collect() {
          this.reset();
          for (const [lock, stats] of statsByName(locks, names)) this.set({ lock }, read(stats));
        },
      }),
  );
}
