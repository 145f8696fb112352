import { tracingChannel } from 'node:diagnostics_channel';
import type * as OpenTelemetry from '@opentelemetry/api';
import { guarded } from '../core/base/safely.ts';
import type { AcquireMessage, Locks } from '../core/index.ts';
import type { LockSpans } from './lock-spans.ts';

/**
 * Creates spans for the acquires and holds of a `Locks`. Returns a function that stops this and ends the open spans. The channel
 * reports acquires in the async context of their callers; events report holds in any context.
 */
export function traceLocks({ context }: typeof OpenTelemetry, locks: Locks, spans: LockSpans): () => void {
  const channel = tracingChannel<unknown, AcquireMessage>('reenlock:acquire');
  const onStart = guarded((message: AcquireMessage) => {
    if (message.locks !== locks) return;
    const inSpan = spans.startAcquire(message);
    const { runStoreCall: runInner = (call) => call() } = message;
    message.runStoreCall = (call) => context.with(inSpan, () => runInner(call));
  });
  const onEnd = guarded((message: AcquireMessage) => {
    if (message.locks === locks) spans.endAcquire(message);
  });
  channel.start.subscribe(onStart as (message: unknown) => void);
  channel.asyncEnd.subscribe(onEnd as (message: unknown) => void);
  const unsubscribes = [
    locks.on('waiting', (event) => spans.waits(event)),
    locks.on('granted', (event) => spans.startHold(event)),
    locks.on('released', ({ holdId }) => spans.endHold(holdId, 'released')),
    locks.on('detached', ({ holdId }) => spans.endHold(holdId, 'detached')),
    locks.on('lost', ({ holdId, error }) => spans.endHold(holdId, 'lost', error)),
  ];
  return () => {
    channel.start.unsubscribe(onStart as (message: unknown) => void);
    channel.asyncEnd.unsubscribe(onEnd as (message: unknown) => void);
    for (const unsubscribe of unsubscribes) unsubscribe();
    spans.endAll();
  };
}
