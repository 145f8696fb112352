import type * as PromClient from 'prom-client';
import type { Locks } from '../core/index.ts';
import type { LockNames } from '../metrics/lock-names.ts';
import { lockGauges } from '../metrics/metric-table.ts';
import { statsByName } from '../metrics/stats-by-name.ts';

/** Gauges that read `locks.stats()` when they are collected. */
export function createGauges(
  { Gauge }: typeof PromClient,
  locks: Locks,
  names: LockNames,
  prefix: string,
): PromClient.Gauge<'lock'>[] {
  return lockGauges.map(
    ({ prometheus: name, help, read }) =>
      new Gauge({
        registers: [],
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
