import type * as OpenTelemetry from '@opentelemetry/api';
import { LockConfigError, type Locks } from '../core/index.ts';
import { loadPeer, tooOld } from '../core/model/peer.ts';
import { boolean, callable, checkOptions, objectWith, type Rules } from '../core/model/validate.ts';
import { LockNames, type NamedLock } from '../metrics/lock-names.ts';
import { recordLockMetrics } from './lock-metrics.ts';
import { LockSpans } from './lock-spans.ts';
import { traceLocks } from './trace-locks.ts';

/** The options of `instrumentLocks`. */
export interface InstrumentLocksOptions {
  /** The name of a lock in spans and metrics, of which there should be few. Default: the category, or `'default'`. */
  readonly lockName?: ((lock: NamedLock) => string) | undefined;
  /** Whether spans have the key as an attribute. Default true. */
  readonly keys?: boolean | undefined;
  /** Where spans go. Default: the global provider. */
  readonly tracerProvider?: OpenTelemetry.TracerProvider | undefined;
  /** Where metrics go. Default: the global provider. */
  readonly meterProvider?: OpenTelemetry.MeterProvider | undefined;
}

const rules: Rules<InstrumentLocksOptions> = {
  lockName: callable,
  keys: boolean,
  tracerProvider: objectWith('a tracer provider of OpenTelemetry', 'getTracer'),
  meterProvider: objectWith('a meter provider of OpenTelemetry', 'getMeter'),
};

/**
 * Makes spans of the acquires and holds of one `Locks`, and collects its metrics, for OpenTelemetry. Call it after the SDK has started.
 * Returns a function that stops this and ends the open spans. Throws `LockConfigError` for bad options, for a second call with the
 * same `Locks` and provider before that, and if `@opentelemetry/api` is not installed or too old.
 *
 * @example
 * ```ts
 * import { configureLocks } from 'reenlock';
 * import { instrumentLocks } from 'reenlock/otel';
 *
 * const locks = configureLocks();
 * const stop = instrumentLocks(locks, { keys: false });
 * process.once('SIGTERM', stop);
 * ```
 */
export function instrumentLocks(locks: Locks, options?: InstrumentLocksOptions): () => void {
  const api = loadPeer<typeof OpenTelemetry>('@opentelemetry/api', 'reenlock/otel', () =>
    require('@opentelemetry/api'),
  );
  const checked = checkOptions(options, rules, 'instrumentLocks');
  const { lockName, keys = true, tracerProvider = api.trace.getTracerProvider() } = checked;
  const { meterProvider = api.metrics.getMeterProvider() } = checked;
  const meter = meterProvider.getMeter('reenlock');
  // The package hides its version. The synchronous gauge is what 1.9 has added.
  if (!('createGauge' in meter)) throw tooOld('@opentelemetry/api', undefined, '1.9', 'reenlock/otel');
  const forget = remember(locks, { tracerProvider, meterProvider });
  const names = new LockNames(lockName);
  const spans = new LockSpans(api, tracerProvider.getTracer('reenlock'), locks, names, keys);
  const stopTracing = traceLocks(api, locks, spans);
  const stopMetrics = recordLockMetrics(meter, locks, names);
  return function stop() {
    stopTracing();
    stopMetrics();
    forget();
  };
}

type Providers = Readonly<Record<'tracerProvider' | 'meterProvider', object>>;

/** Where the spans and metrics of each `Locks` go. */
const providersOf = new WeakMap<Locks, Set<Providers>>();

/** Throws if a provider would get everything twice. Returns a function that forgets the providers. */
function remember(locks: Locks, providers: Providers): () => void {
  const known = providersOf.get(locks) ?? new Set();
  for (const name of ['tracerProvider', 'meterProvider'] as const) {
    if (![...known].some((other) => other[name] === providers[name])) continue;
    throw new LockConfigError(
      `Expected a \`Locks\` that \`instrumentLocks\` does not observe yet for this \`${name}\`, got one that it does: first call the function that the earlier call returned`,
    );
  }
  providersOf.set(locks, known.add(providers));
  return () => known.delete(providers);
}
