import type * as PromClient from 'prom-client';
import type { Locks } from '../core/index.ts';
import { LockConfigError } from '../core/model/errors/mistakes.ts';
import { isOlder, loadPeer, tooOld } from '../core/model/peer.ts';
import { callable, checkOptions, objectWith, type Rules, text } from '../core/model/validate.ts';
import { LockNames, type NamedLock } from '../metrics/lock-names.ts';
import { help } from '../metrics/metric-table.ts';
import { acquireBuckets, holdBuckets, observeLocks } from '../metrics/observe-locks.ts';
import { createGauges } from './gauges.ts';

/** The options of `collectLockMetrics`. */
export interface LockMetricsOptions {
  /** The registry of the metrics. Default: the default registry of `prom-client`. */
  readonly registry?: PromClient.Registry | undefined;
  /** The beginning of each metric's name. Default `'reenlock_'`. */
  readonly prefix?: string | undefined;
  /** The value of the label `lock`, of which there should be few. Default: the category, or `'default'`. */
  readonly lockName?: ((lock: NamedLock) => string) | undefined;
  /** The buckets of the two histograms, in seconds. */
  readonly buckets?: { readonly acquire?: readonly number[]; readonly hold?: readonly number[] } | undefined;
}

const rules: Rules<LockMetricsOptions> = {
  registry: objectWith('a registry of prom-client', 'registerMetric', 'getSingleMetric', 'removeSingleMetric'),
  prefix: text(/^[A-Za-z_:][A-Za-z0-9_:]*$/, 'the beginning of a metric name'),
  lockName: callable,
  buckets: { expected: 'an object with `acquire` and `hold`', accepts: (value: unknown) => typeof value === 'object' },
};

const oldestClient = '15';

/**
 * Collects metrics of one `Locks` for Prometheus. Returns a function that stops this and removes the metrics from the registry. Throws
 * `LockConfigError` for bad options, if `prom-client` is not installed or too old, and if the registry already has a metric of that
 * name, as after another call. It has registered none then.
 *
 * @example
 * ```ts
 * import { register } from 'prom-client';
 * import { configureLocks } from 'reenlock';
 * import { collectLockMetrics } from 'reenlock/prometheus';
 *
 * const stop = collectLockMetrics(configureLocks());
 * console.log(await register.metrics());
 * process.once('SIGTERM', stop);
 * ```
 */
export function collectLockMetrics(locks: Locks, options?: LockMetricsOptions): () => void {
  const client = loadPeer<typeof PromClient>('prom-client', 'reenlock/prometheus', () => require('prom-client'));
  const { version } = require('prom-client/package.json') as { version: string };
  if (isOlder(version, oldestClient)) throw tooOld('prom-client', version, oldestClient, 'reenlock/prometheus');
  const { Histogram, Counter, Gauge, register } = client;
  const checked = checkOptions(options, rules, 'collectLockMetrics');
  const { registry = register, prefix = 'reenlock_', lockName, buckets } = checked;
  const names = new LockNames(lockName);
  const metric = { registers: [] };
  const labelNames = ['lock', 'mode', 'outcome'] as const;

  const acquires = new Histogram({
    ...metric,
    name: `${prefix}acquire_duration_seconds`,
    help: help.acquires,
    labelNames,
    buckets: [...(buckets?.acquire ?? acquireBuckets)],
  });
  const holds = new Histogram({
    ...metric,
    name: `${prefix}hold_duration_seconds`,
    help: help.holds,
    labelNames,
    buckets: [...(buckets?.hold ?? holdBuckets)],
  });
  const gauges = createGauges(client, locks, names, prefix);
  const counter = <L extends string>(name: string, about: string, ...labels: L[]): PromClient.Counter<L> =>
    new Counter({ ...metric, name: `${prefix}${name}_total`, help: about, labelNames: labels });
  const storeErrors = counter('store_errors', help.storeErrors, 'operation', 'outcome');
  const storeDown = new Gauge({ ...metric, name: `${prefix}store_down`, help: help.storeDown });
  const failedOpen = counter('guard_failed_open', help.failedOpen);
  const overlaps = counter('overlaps', help.overlaps, 'lock');
  const refusedHeaders = counter('trace_header_refused', help.refusedHeaders, 'reason');
  const unregister = registerAll(registry, [
    ...[acquires, holds, ...gauges],
    ...[storeErrors, storeDown, failedOpen, overlaps, refusedHeaders],
  ]);

  const stopObserving = observeLocks(locks, names, {
    // For Prometheus, a counter that starts at 1 has not increased: an alert would miss the first loss.
    onLock: (labels) => {
      holds.zero({ ...labels, outcome: 'lost' });
      acquires.zero({ ...labels, outcome: 'deadlock' });
      overlaps.inc({ lock: labels.lock }, 0);
    },
    onAcquire: (seconds, labels) => acquires.observe({ ...labels }, seconds),
    onHold: (seconds, labels) => holds.observe({ ...labels }, seconds),
    onStoreError: (labels) => storeErrors.inc(labels),
    onStoreDown: (isDown) => storeDown.set(Number(isDown)),
    onFailedOpen: () => failedOpen.inc(),
    onOverlap: (labels) => overlaps.inc(labels),
    onHeaderRefused: (labels) => refusedHeaders.inc(labels),
  });
  return function stop() {
    stopObserving();
    unregister();
  };
}

/** Registers all metrics, or none. Returns a function that removes them, and nobody else's. */
function registerAll(registry: PromClient.Registry, metrics: readonly PromClient.Metric[]): () => void {
  const named = metrics.map((metric) => [(metric as unknown as { readonly name: string }).name, metric] as const);
  const taken = named.find(([name]) => registry.getSingleMetric(name) !== undefined)?.[0];
  if (taken !== undefined) {
    throw new LockConfigError(
      `Expected a registry without the metrics of \`collectLockMetrics\`, got one that has \`${taken}\`: for the same \`Locks\`, first call the function that the earlier call returned; for another, set its \`prefix\` or \`registry\``,
    );
  }
  for (const metric of metrics) registry.registerMetric(metric);
  return () => {
    for (const [name, metric] of named)
      if (registry.getSingleMetric(name) === metric) registry.removeSingleMetric(name);
  };
}
