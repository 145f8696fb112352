import type * as PromClient from 'prom-client';
import type { LockEvent, Locks } from '../core/index.ts';
import { callable, checkOptions, objectWith, type Rules, text } from '../core/model/validate.ts';
import { createGauges } from './gauges.ts';
import { LockNames } from './lock-names.ts';
import { loadClient } from './prom-client.ts';

/** The options of `collectLockMetrics`. */
export interface LockMetricsOptions {
  /** The registry of the metrics. Default: the default registry of `prom-client`. */
  readonly registry?: PromClient.Registry | undefined;
  /** The beginning of each metric's name. Default `'reenlock_'`. */
  readonly prefix?: string | undefined;
  /** The value of the label `lock`, of which there should be few. Default: the category, or `'default'`. */
  readonly lockName?: ((event: Pick<LockEvent, 'category'>) => string) | undefined;
  /** The buckets of the two histograms, in seconds. */
  readonly buckets?: { readonly acquire?: readonly number[]; readonly hold?: readonly number[] } | undefined;
}

const acquireBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const holdBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];

const rules: Rules<LockMetricsOptions> = {
  registry: objectWith('a registry of prom-client', 'registerMetric', 'removeSingleMetric'),
  prefix: text(/^[A-Za-z_:][A-Za-z0-9_:]*$/, 'the beginning of a metric name'),
  lockName: callable,
  buckets: { expected: 'an object with `acquire` and `hold`', accepts: (value: unknown) => typeof value === 'object' },
};

/**
 * Collects metrics of one `Locks` for Prometheus. Returns the function that ends this and removes the metrics from the
 * registry. Throws `LockConfigError` for bad options, and if `prom-client` is not installed; and as `prom-client` does if
 * the registry has a metric of such a name.
 */
export function collectLockMetrics(locks: Locks, options?: LockMetricsOptions): () => void {
  const { Histogram, Counter, register } = loadClient();
  const checked = checkOptions(options, rules, 'collectLockMetrics');
  const { registry = register, prefix = 'reenlock_', lockName, buckets } = checked;
  const names = new LockNames(lockName);
  const metric = { registers: [registry] };
  const labelNames = ['lock', 'mode', 'outcome'] as const;

  const acquires = new Histogram({
    ...metric,
    name: `${prefix}acquire_duration_seconds`,
    help: 'How long acquires took that were no local re-entry',
    labelNames,
    buckets: [...(buckets?.acquire ?? acquireBuckets)],
  });
  const holds = new Histogram({
    ...metric,
    name: `${prefix}hold_duration_seconds`,
    help: 'How long locks were held',
    labelNames,
    buckets: [...(buckets?.hold ?? holdBuckets)],
  });
  const gauges = createGauges(locks, names, registry, prefix);
  const storeErrors = new Counter({
    ...metric,
    name: `${prefix}store_errors_total`,
    help: 'Store calls that failed',
    labelNames: ['operation', 'outcome'],
  });
  const failedOpen = new Counter({
    ...metric,
    name: `${prefix}guard_failed_open_total`,
    help: 'Requests that a guard let in without the lock, because the store failed',
  });
  const refusedHeaders = new Counter({
    ...metric,
    name: `${prefix}trace_header_refused_total`,
    help: 'Trace headers that were not adopted',
    labelNames: ['reason'],
  });

  const observe =
    (histogram: typeof acquires, outcome: string) =>
    (event: LockEvent & { readonly waitedMs?: number; readonly heldMs?: number }): void =>
      histogram.observe(
        { lock: names.of(event), mode: event.mode, outcome },
        (event.waitedMs ?? event.heldMs ?? 0) / 1000,
      );
  const unsubscribes = [
    ...(['granted', 'refused', 'timeout', 'aborted', 'deadlock'] as const).map((event) =>
      locks.on(event, observe(acquires, event)),
    ),
    ...(['released', 'lost'] as const).map((event) => locks.on(event, observe(holds, event))),
    locks.on('storeError', ({ operation, error }) => {
      const { outcome = 'unknown' } = error as { outcome?: string };
      storeErrors.inc({ operation, outcome });
    }),
    locks.on('failedOpen', () => failedOpen.inc()),
    locks.on('headerRefused', ({ reason }) => refusedHeaders.inc({ reason })),
  ];
  const all = [acquires, holds, ...gauges, storeErrors, failedOpen, refusedHeaders];
  return function stop() {
    for (const unsubscribe of unsubscribes) unsubscribe();
    for (const each of all) registry.removeSingleMetric((each as unknown as { readonly name: string }).name);
  };
}
