import type { Granted } from '../client/granted.ts';
import { hasCode } from '../model/errors/by-code.ts';
import { type EventSource, type Events, eventOf, type RefusalReason } from '../model/events.ts';
import { branchOf } from '../model/owner.ts';
import type { AcquireMessage, Failure, Outcome } from './acquire-channel.ts';

/** An acquire that has ended, for its event and its message on the tracing channel. */
interface EndedAcquire extends EventSource {
  /** In whole milliseconds. */
  readonly waitedMs: number;
  /** If the channel has subscribers. */
  readonly message: AcquireMessage | undefined;
  /** Whether its caller goes on if the key is not free. */
  readonly isProbe: boolean;
}

/** Emits the event of a granted acquire, and completes its message on the tracing channel. */
export function reportGranted(
  events: Events,
  acquire: EndedAcquire,
  { fence, otherHolds = 0 }: Granted,
  isOverlap: boolean,
): void {
  const { message } = acquire;
  const hasListener = events.has('granted');
  if (hasListener || message !== undefined) {
    // Not a spread of `eventOf`: with one here and for `released`, a `lock.run` with listeners takes 1.3 times as long.
    const { key, category, traceId, waitedMs, request } = acquire;
    const { mode, holdId } = request;
    const branch = branchOf(request.owner);
    if (message !== undefined) setEnd(message, 'granted', waitedMs).fence = fence;
    if (hasListener) events.emit('granted', { key, category, mode, traceId, branch, holdId, fence, waitedMs });
  }
  if (otherHolds > 0) events.emit('entered', { ...eventOf(acquire), fence, otherHolds, isOverlap });
}

/** Completes the message of an acquire that re-entered after a wait. Re-entries have no event. */
export function reportReentered({ message, waitedMs }: EndedAcquire, fence: number): void {
  if (message !== undefined) setEnd(message, 'granted', waitedMs).fence = fence;
}

/** Emits the one event of a failed acquire, and completes its message on the tracing channel. */
export function reportFailed(
  events: Events,
  acquire: EndedAcquire,
  error: unknown,
  outcome: Failure = outcomeOf(error),
): void {
  const { message } = acquire;
  const isEnd = !acquire.isProbe || !isNotFree(error);
  const hasListener = isEnd && events.has(outcome);
  if (!hasListener && message === undefined) return;
  const { waitedMs } = acquire;
  if (message !== undefined) setEnd(message, outcome, waitedMs);
  if (!hasListener) return;
  const event = { ...eventOf(acquire), waitedMs };
  if (outcome === 'refused') events.emit('refused', { ...event, reason: reasonOf(error) });
  else if (hasCode(error, 'ERR_LOCK_TIMEOUT')) events.emit('timeout', { ...event, holder: error.holder });
  else if (hasCode(error, 'ERR_LOCK_DEADLOCK')) events.emit('deadlock', { ...event, cycle: error.cycle });
  else events.emit('aborted', event);
}

/** For a try, a deadlock means that it reads alongside others and asked to write. */
export function isNotFree(error: unknown): boolean {
  return hasCode(error, 'ERR_LOCK_TIMEOUT') || hasCode(error, 'ERR_LOCK_DEADLOCK');
}

function setEnd(message: AcquireMessage, outcome: Outcome, waitedMs: number): AcquireMessage {
  message.outcome = outcome;
  message.waitedMs = waitedMs;
  return message;
}

function outcomeOf(error: unknown): Failure {
  if (hasCode(error, 'ERR_LOCK_TIMEOUT')) return 'timeout';
  if (hasCode(error, 'ERR_LOCK_DEADLOCK')) return 'deadlock';
  // The end of a scope aborts the acquires in it.
  return hasCode(error, 'ERR_LOCK_ABORTED') || hasCode(error, 'ERR_LOCK_SCOPE') ? 'aborted' : 'refused';
}

function reasonOf(error: unknown): RefusalReason {
  // It was refused without a wait.
  if (hasCode(error, 'ERR_LOCK_TIMEOUT')) return 'busy';
  if (hasCode(error, 'ERR_LOCK_LIMIT')) return 'limit';
  if (hasCode(error, 'ERR_LOCK_CLOSED')) return 'closed';
  return hasCode(error, 'ERR_LOCK_LOST') ? 'lost' : 'store';
}
