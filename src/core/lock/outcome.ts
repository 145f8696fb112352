import { hasCode, isLockError } from '../model/errors.ts';
import { type EventSource, type Events, eventOf, type RefusalReason } from '../model/events.ts';

/** How an acquire ended, as events and traces name it. */
export type Outcome = 'granted' | Failure;

/** How an acquire ended that was not granted. */
export type Failure = 'refused' | 'timeout' | 'aborted' | 'deadlock';

/** Emits the one event that ends an acquire without a grant. A mistake in the options is no outcome of an acquire. */
export function emitFailure(
  events: Events,
  source: EventSource & { readonly waitedMs: number },
  outcome: Failure,
  error: unknown,
): void {
  if (!events.has(outcome) || (isLockError(error) && error.code === 'ERR_LOCK_CONFIG')) return;
  const event = { ...eventOf(source), waitedMs: source.waitedMs };
  if (outcome === 'refused') events.emit(outcome, { ...event, reason: reasonOf(error) });
  else if (hasCode(error, 'ERR_LOCK_TIMEOUT')) events.emit('timeout', { ...event, holder: error.holder });
  else if (hasCode(error, 'ERR_LOCK_DEADLOCK')) events.emit('deadlock', { ...event, cycle: error.cycle });
  else events.emit('aborted', event);
}

/** The outcome of an acquire that failed. */
export function outcomeOf(error: unknown): Failure {
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
