import type * as OpenTelemetry from '@opentelemetry/api';
import { outsideRequests, systemClock, type Timer } from '../core/base/clock.ts';
import { type AcquireMessage, isLockError, type LockEvent, type LockLostError, type Locks } from '../core/index.ts';
import { hasCode } from '../core/model/errors/by-code.ts';
import type { LockNames } from '../metrics/lock-names.ts';

/** After this time a waiter asks the store for the holder that blocks it, if this process does not know it. */
const askAfterMs = 1_000;

interface AcquireSpan {
  readonly span: OpenTelemetry.Span;
  /** Where the acquire was called: its span and that of the hold are siblings there. */
  readonly caller: OpenTelemetry.Context;
  /** Asks for the holder that blocks it. Started when it waits, cancelled at its end. */
  timer?: Timer;
}

interface HoldSpan {
  readonly span: OpenTelemetry.Span;
  readonly lock: string;
}

/** The open spans of the acquires and holds of one `Locks`. */
export class LockSpans {
  readonly #api: typeof OpenTelemetry;
  readonly #tracer: OpenTelemetry.Tracer;
  readonly #locks: Locks;
  readonly #names: LockNames;
  readonly #showsKeys: boolean;
  /** By hold id. */
  readonly #acquires = new Map<string, AcquireSpan>();
  /** By hold id. */
  readonly #holds = new Map<string, HoldSpan>();
  /** The spans of the holds on each lock. */
  readonly #holders = new Map<string, Set<OpenTelemetry.Span>>();

  constructor(
    api: typeof OpenTelemetry,
    tracer: OpenTelemetry.Tracer,
    locks: Locks,
    names: LockNames,
    showsKeys: boolean,
  ) {
    this.#api = api;
    this.#tracer = tracer;
    this.#locks = locks;
    this.#names = names;
    this.#showsKeys = showsKeys;
  }

  /** Returns the context for the store call. */
  startAcquire(message: AcquireMessage): OpenTelemetry.Context {
    const caller = this.#api.context.active();
    const attributes = { ...this.#attributesOf(message), 'reenlock.lock.caller': message.caller };
    const span = this.#tracer.startSpan(`acquire ${this.#names.of(message)}`, { attributes }, caller);
    this.#acquires.set(message.holdId, { span, caller });
    return this.#api.trace.setSpan(caller, span);
  }

  endAcquire({ holdId, outcome, fence, wasQueued = false, error }: AcquireMessage): void {
    const acquire = this.#acquires.get(holdId);
    if (acquire === undefined) return;
    this.#acquires.delete(holdId);
    acquire.timer?.cancel();
    const { span } = acquire;
    span.setAttribute('reenlock.lock.queued', wasQueued);
    if (outcome !== undefined) span.setAttribute('reenlock.lock.outcome', outcome);
    if (fence !== undefined) span.setAttribute('reenlock.lock.fence', fence);
    this.#end(span, error, outcome === 'refused' && !hasCode(error, 'ERR_LOCK_STORE'));
  }

  /** Records which holder blocks an acquire: as links to holds of this process, or later as the trace and branch in the store. */
  waits(event: LockEvent): void {
    const acquire = this.#acquires.get(event.holdId);
    if (acquire === undefined) return;
    const holders = this.#holders.get(lockOf(event));
    if (holders !== undefined) for (const holder of holders) acquire.span.addLink({ context: holder.spanContext() });
    else acquire.timer = outsideRequests(() => systemClock.after(askAfterMs, () => this.#nameHolder(acquire, event)));
  }

  startHold(event: LockEvent & { readonly fence: number }): void {
    const acquire = this.#acquires.get(event.holdId);
    if (acquire === undefined) return;
    const attributes = { ...this.#attributesOf(event), 'reenlock.lock.fence': event.fence };
    const span = this.#tracer.startSpan(`hold ${this.#names.of(event)}`, { attributes }, acquire.caller);
    const lock = lockOf(event);
    this.#holds.set(event.holdId, { span, lock });
    const holders = this.#holders.get(lock);
    if (holders === undefined) this.#holders.set(lock, new Set([span]));
    else holders.add(span);
  }

  endHold(holdId: string, outcome: 'released' | 'lost' | 'detached', error?: LockLostError): void {
    const hold = this.#holds.get(holdId);
    if (hold === undefined) return;
    this.#holds.delete(holdId);
    const holders = this.#holders.get(hold.lock);
    holders?.delete(hold.span);
    if (holders?.size === 0) this.#holders.delete(hold.lock);
    hold.span.setAttribute('reenlock.lock.outcome', outcome);
    this.#end(hold.span, error);
  }

  /** Ends all spans as they are, although their acquires and holds go on. */
  endAll(): void {
    for (const { span, timer } of this.#acquires.values()) {
      timer?.cancel();
      span.end();
    }
    for (const { span } of this.#holds.values()) span.end();
    this.#acquires.clear();
    this.#holds.clear();
    this.#holders.clear();
  }

  #end(span: OpenTelemetry.Span, error: unknown, isExpected = false): void {
    if (error !== undefined) {
      const { code, message } = isLockError(error) ? error : { code: '_OTHER', message: String(error) };
      span.setAttribute('error.type', code);
      if (!isExpected) span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message });
    }
    span.end();
  }

  #attributesOf(lock: LockEvent): OpenTelemetry.Attributes {
    return {
      'reenlock.lock.name': this.#names.of(lock),
      ...(this.#showsKeys ? { 'reenlock.lock.key': lock.key } : {}),
      'reenlock.lock.mode': lock.mode,
      'reenlock.lock.trace_id': lock.traceId,
      'reenlock.lock.branch': lock.branch,
    };
  }

  async #nameHolder({ span, caller }: AcquireSpan, { key, category }: LockEvent): Promise<void> {
    const { context, trace } = this.#api;
    const inspect = () => this.#locks.inspect(key, { category });
    // A failure emits `storeError`.
    const info = await context.with(trace.setSpan(caller, span), inspect).catch(() => undefined);
    const [holder] = info?.holds ?? [];
    if (holder === undefined || !span.isRecording()) return;
    if (holder.traceId !== undefined) span.setAttribute('reenlock.blocked_by.trace_id', holder.traceId);
    span.setAttribute('reenlock.blocked_by.branch', holder.branch);
  }
}

function lockOf({ key, category = '' }: LockEvent): string {
  return `${category} ${key}`;
}
