import type { Gauge, Registry } from 'prom-client';
import type { LockStats, Locks } from '../core/index.ts';
import type { LockNames } from './lock-names.ts';
import { loadClient } from './prom-client.ts';

/** Gauges that read `locks.stats()` when they are collected. */
export function createGauges(locks: Locks, names: LockNames, registry: Registry, prefix: string): Gauge<'lock'>[] {
  const { Gauge } = loadClient();
  return (
    [
      ['holds', 'Locks that this process holds', (stats) => stats.holds],
      ['waiters', 'Acquires of this process that wait', (stats) => stats.waiters],
      ['oldest_hold_seconds', 'Age of the oldest hold of this process', (stats) => stats.oldestHoldMs / 1000],
      ['oldest_wait_seconds', 'Age of the oldest wait of this process', (stats) => stats.oldestWaitMs / 1000],
    ] as const satisfies [string, string, (stats: LockStats) => number][]
  ).map(
    ([name, help, read]) =>
      new Gauge({
        registers: [registry],
        name: `${prefix}${name}`,
        help,
        labelNames: ['lock'],
        collect() {
          this.reset();
          const isAge = name.endsWith('_seconds');
          const totals = new Map<string, number>();
          for (const [lock, stats] of byName(locks, names)) {
            const value = read(stats);
            const sofar = totals.get(lock) ?? 0;
            totals.set(lock, isAge ? Math.max(sofar, value) : sofar + value);
          }
          for (const [lock, value] of totals) this.set({ lock }, value);
        },
      }),
  );
}

function byName(locks: Locks, names: LockNames): [lock: string, stats: LockStats][] {
  const { byCategory, otherCategories } = locks.stats();
  const named = [...byCategory].map(([category, stats]): [string, LockStats] => [
    names.of({ category: category === '' ? undefined : category }),
    stats,
  ]);
  return otherCategories === undefined ? named : [...named, ['other', otherCategories]];
}
