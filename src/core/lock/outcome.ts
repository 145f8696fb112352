import type { Granted } from '../client/granted.ts';
import { hasCode, isLockError } from '../model/errors.ts';
import { type EventSource, type Events, eventOf, type RefusalReason } from '../model/events.ts';
import { branchOf } from '../model/owner.ts';
import type { AcquireMessage, Failure, Outcome } from './acquire-channel.ts';

/** An acquire that has ended, as its event and its message on the tracing channel tell of it. */
interface EndedAcquire extends EventSource {
  /** In whole milliseconds. */
  readonly waitedMs: number;
  /** If the channel has subscribers. */
  readonly message: AcquireMessage | undefined;
  /** Whether a key that is not free is no end of it. */
  readonly isProbe: boolean;
}

/** Tells that an acquire was granted. */
export function tellGranted(
  events: Events,
  acquire: EndedAcquire,
  { fence, otherHolds = 0 }: Granted,
  isOverlap: boolean,
): void {
  const { message } = acquire;
  const hasListener = events.has('granted');
  if (hasListener || message !== undefined) {
    const { key, category, traceId, waitedMs, request } = acquire;
    const { mode, holdId } = request;
    const branch = branchOf(request.owner);
    if (message !== undefined) setEnd(message, 'granted', waitedMs).fence = fence;
    if (hasListener) events.emit('granted', { key, category, mode, traceId, branch, holdId, fence, waitedMs });
  }
  if (otherHolds > 0) events.emit('entered', { ...eventOf(acquire), fence, otherHolds, isOverlap });
}

/** Tells that an acquire failed, with the one event that ends it. */
export function tellFailed(
  events: Events,
  acquire: EndedAcquire,
  error: unknown,
  outcome: Failure = outcomeOf(error),
): void {
  const { message } = acquire;
  const isEnd = !acquire.isProbe || !isNotFree(error);
  const hasListener = isEnd && events.has(outcome);
  if (!hasListener && message === undefined) return;
  const { key, category, traceId, waitedMs, request } = acquire;
  const { mode, holdId } = request;
  const branch = branchOf(request.owner);
  if (message !== undefined) setEnd(message, outcome, waitedMs);
  if (!hasListener) return;
  if (outcome === 'refused') {
    const reason = reasonOf(error);
    events.emit('refused', { key, category, mode, traceId, branch, holdId, waitedMs, reason });
  } else if (hasCode(error, 'ERR_LOCK_TIMEOUT')) {
    const { holder } = error;
    events.emit('timeout', { key, category, mode, traceId, branch, holdId, waitedMs, holder });
  } else if (hasCode(error, 'ERR_LOCK_DEADLOCK')) {
    const { cycle } = error;
    events.emit('deadlock', { key, category, mode, traceId, branch, holdId, waitedMs, cycle });
  } else events.emit('aborted', { key, category, mode, traceId, branch, holdId, waitedMs });
}

/** A deadlock of a try is a reader beside others that asks to write. */
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
  // A scope that is over aborts the acquires in it.
  const isAborted = isLockError(error) && (error.code === 'ERR_LOCK_ABORTED' || error.code === 'ERR_LOCK_SCOPE');
  return isAborted ? 'aborted' : 'refused';
}

function reasonOf(error: unknown): RefusalReason {
  const code = isLockError(error) ? error.code : undefined;
  // It was refused without a wait.
  if (code === 'ERR_LOCK_TIMEOUT') return 'busy';
  if (code === 'ERR_LOCK_LIMIT') return 'limit';
  if (code === 'ERR_LOCK_CLOSED') return 'closed';
  return code === 'ERR_LOCK_LOST' ? 'lost' : 'store';
}
