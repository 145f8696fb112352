import { type Instant, wholeMs } from '../base/clock.ts';
import { hasCode, isLockError } from '../model/errors.ts';
import { type EventSource, eventOf, type RefusalReason } from '../model/events.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** How an acquire ended, as events and traces name it. */
export type Outcome = 'granted' | 'refused' | 'timeout' | 'aborted' | 'deadlock';

/**
 * Emits the one event that ends an acquire without a grant. `wasBusy` says that it was refused without a wait. A mistake in
 * the options is no outcome of an acquire.
 */
export function emitFailure(
  { events, clock }: Runtime,
  source: EventSource,
  startedAt: Instant,
  error: unknown,
  wasBusy = false,
): void {
  const outcome = wasBusy ? 'refused' : outcomeOf(error);
  if (!events.has(outcome) || (isLockError(error) && error.code === 'ERR_LOCK_CONFIG')) return;
  const event = { ...eventOf(source), waitedMs: wholeMs(clock.now(), startedAt) };
  if (outcome === 'refused') events.emit(outcome, { ...event, reason: wasBusy ? 'busy' : reasonOf(error) });
  else if (hasCode(error, 'ERR_LOCK_DEADLOCK')) events.emit('deadlock', { ...event, cycle: error.cycle });
  else if (outcome === 'timeout') events.emit(outcome, event);
  else events.emit('aborted', event);
}

/** The outcome of an acquire that failed. */
export function outcomeOf(error: unknown): Exclude<Outcome, 'granted'> {
  if (hasCode(error, 'ERR_LOCK_TIMEOUT')) return 'timeout';
  if (hasCode(error, 'ERR_LOCK_DEADLOCK')) return 'deadlock';
  // A scope that is over aborts the acquires in it.
  const isAborted = isLockError(error) && (error.code === 'ERR_LOCK_ABORTED' || error.code === 'ERR_LOCK_SCOPE');
  return isAborted ? 'aborted' : 'refused';
}

function reasonOf(error: unknown): RefusalReason {
  const code = isLockError(error) ? error.code : undefined;
  if (code === 'ERR_LOCK_LIMIT') return 'limit';
  if (code === 'ERR_LOCK_CLOSED') return 'closed';
  return code === 'ERR_LOCK_LOST' ? 'lost' : 'store';
}
