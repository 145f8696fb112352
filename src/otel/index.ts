/** Traces and metrics for OpenTelemetry: `reenlock/otel`. Needs `@opentelemetry/api`. */

export { type InstrumentLocksOptions, instrumentLocks } from './instrument-locks.ts';
