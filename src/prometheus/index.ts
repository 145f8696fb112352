/** Metrics for Prometheus: `reenlock/prometheus`. Needs `prom-client`. */

export { collectLockMetrics, type LockMetricsOptions } from './collect-lock-metrics.ts';
