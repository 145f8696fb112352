import { tracingChannel } from 'node:diagnostics_channel';
import { loadReenlock } from './open-reenlock.mjs';

/** The events of a cycle, and those that end an acquire or a hold otherwise. */
const events = ['granted', 'waiting', 'refused', 'timeout', 'aborted', 'deadlock', 'renewed', 'released', 'lost'];

function listen({ locks }) {
  const stops = events.map((event) => locks.on(event, () => {}));
  return () => {
    for (const stop of stops) stop();
  };
}

/** What may listen to a `Locks`: each returns the function that ends it. */
export const subscribers = {
  listeners: listen,
  removed(opened) {
    listen(opened)();
    return () => {};
  },
  channel() {
    const handlers = { start() {}, end() {}, asyncStart() {}, asyncEnd() {}, error() {} };
    const channel = tracingChannel('reenlock:acquire');
    channel.subscribe(handlers);
    return () => channel.unsubscribe(handlers);
  },
  async prometheus({ locks }, from) {
    const { Registry } = await import('prom-client');
    const { collectLockMetrics } = await loadReenlock('prometheus', from);
    return collectLockMetrics(locks, { registry: new Registry() });
  },
  async otel({ locks }, from) {
    const { context } = await import('@opentelemetry/api');
    const { AsyncLocalStorageContextManager } = await import('@opentelemetry/context-async-hooks');
    const { BasicTracerProvider } = await import('@opentelemetry/sdk-trace-base');
    const { MeterProvider } = await import('@opentelemetry/sdk-metrics');
    const { instrumentLocks } = await loadReenlock('otel', from);
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    const dropped = { onStart() {}, onEnd() {}, forceFlush: async () => {}, shutdown: async () => {} };
    const tracerProvider = new BasicTracerProvider({ spanProcessors: [dropped] });
    return instrumentLocks(locks, { tracerProvider, meterProvider: new MeterProvider() });
  },
};
