import type { Instant } from '../base/clock.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { DeadlockError, LockLimitError, LockStoreError } from '../model/errors.ts';
import type { AcquireReply, InspectReply } from '../model/store.ts';
import type { Base } from '../runtime/runtime.ts';
import type { NotFree, Waiter, WaitQueue } from '../wait/local-queue.ts';
import { retryAfterMs } from '../wait/retry-after.ts';
import { reported } from './calls.ts';

/** Called with every reply: grants to this process ride in it. */
type OnReply = (id: string, sent: Instant, reply: AcquireReply) => void;

/**
 * Sends what is asked for waiters to the store: a waiter's first acquire, and its polls, which are the same call again.
 * Each failure is reported as a `storeError` event.
 */
export class Asks {
  readonly #base: Base;
  readonly #livenessMs: number;
  readonly #onReply: OnReply;

  constructor(base: Base, livenessMs: number, onReply: OnReply) {
    this.#base = base;
    this.#livenessMs = livenessMs;
    this.#onReply = onReply;
  }

  send(
    operation: 'acquire' | 'poll',
    { ask: { key, request, leaseMs, waitMs } }: Waiter,
    sent: Instant,
    deadlineMs: number,
    onReply: (reply: AcquireReply) => void,
    onError: (error: LockStoreError) => void,
  ): void {
    const { store, calls, events, settings } = this.#base;
    const maxWaiters = settings.maxWaitersPerKey;
    const terms = { leaseMs, queue: waitMs > 0, maxWaiters, livenessMs: this.#livenessMs };
    const answer = (reply: AcquireReply): void => {
      this.#onReply(request.id, sent, reply);
      onReply(reply);
    };
    const call = (): MaybePromise<AcquireReply> => store.acquire(request, terms);
    calls.start('acquire', sent, deadlineMs, call, answer, (failure) =>
      onError(reported(events, operation, key, failure)),
    );
  }

  /** Asks who holds what a waiter waits for. */
  look(
    { ask: { key, request } }: Waiter,
    sent: Instant,
    deadlineMs: number,
    onReply: (reply: InspectReply) => void,
    onError: (error: LockStoreError) => void,
  ): void {
    const { store, calls, events } = this.#base;
    const call = (): MaybePromise<InspectReply> => store.inspect(request.id);
    calls.start('inspect', sent, deadlineMs, call, onReply, (failure) =>
      onError(reported(events, 'inspect', key, failure)),
    );
  }
}

/** When another try is worth it for who was not queued: the oldest of those who are has seen most of the queue. */
export function retryAfterRefusal(reply: NotFree, queue: WaitQueue | undefined): number {
  const { oldest } = queue ?? {};
  return retryAfterMs({ ...reply, turnMs: oldest && queue?.turnMs(oldest) });
}

/** What an acquire is refused with that the store neither granted nor queued. */
export function refusal(
  { ask: { key, work } }: Waiter,
  reply: Exclude<AcquireReply, { status: 'granted' | 'queued' }>,
  queue: WaitQueue | undefined,
): Error {
  if (reply.status === 'full') {
    const message = 'Too many requests wait for this lock';
    return new LockLimitError(message, { key, retryAfterMs: retryAfterRefusal(reply, queue) });
  }
  if (reply.status === 'conflict') {
    const message = 'The lock is held to read beside others, and was asked for to write: that would wait for itself';
    return new DeadlockError({ key, cycle: [{ traceId: work.traceId, key }] }, message);
  }
  return new LockStoreError('The lock store had cancelled this call', { key, outcome: 'not-applied' });
}

/** What an acquire is refused with that would be one waiter too many of its `Locks`, mostly the only one of its process. */
export function tooMany(key: string): LockLimitError {
  return new LockLimitError('Too many requests of this process wait for locks', { key });
}

/** What an acquire fails with whose grant was over when it arrived. */
export function tooLate(key: string): LockStoreError {
  return new LockStoreError('The lock store answered too late: the lease was over', { key, outcome: 'unknown' });
}

/** What an acquire fails with whose time was over before it could be sent. */
export function notAsked(key: string): LockStoreError {
  const message = 'The lock store was not asked: this process stood still for longer than the acquire had time';
  return new LockStoreError(message, { key, outcome: 'not-applied' });
}
