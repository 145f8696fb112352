import type { HoldTimes } from '../client/hold-times.ts';
import { DeadlockError, LockLimitError, LockStoreError } from '../model/errors.ts';
import { otherPermits } from '../model/options.ts';
import type { AcquireReply } from '../model/store.ts';
import type { NotFree, Waiter, WaitQueue } from './local-queue.ts';
import { retryAfterMs } from './retry-after.ts';
import type { AcquireTask } from './task.ts';

/** When another try is worth it for an acquire that was not queued. The oldest waiter has seen most of the queue. */
export function retryAfterRefusal(
  { task }: Waiter,
  reply: NotFree,
  queue: WaitQueue | undefined,
  holdTimes: HoldTimes,
): number {
  const { oldest } = queue ?? {};
  const turnMs = (oldest && queue?.turnMs(oldest)) ?? typicalMs(task, holdTimes);
  return retryAfterMs({ ...reply, turnMs });
}

/** How long a turn of the key that a task is for lasts, if that is known: with permits, several owners hold it at once. */
export function typicalMs({ request, category }: AcquireTask, holdTimes: HoldTimes): number | undefined {
  const holdMs = holdTimes.typicalMs({ id: request.id, category });
  return holdMs && holdMs / (request.permits ?? 1);
}

/** The error for an acquire that the store neither granted nor queued. */
export function refusal(
  waiter: Waiter,
  reply: Exclude<AcquireReply, { status: 'granted' | 'queued' }>,
  queue: WaitQueue | undefined,
  holdTimes: HoldTimes,
): Error {
  const { key, category, request, work } = waiter.task;
  if (reply.status === 'full') {
    const message = 'Too many requests wait for this lock';
    const retryAfterMs = retryAfterRefusal(waiter, reply, queue, holdTimes);
    return new LockLimitError(message, { key, category, retryAfterMs });
  }
  if (reply.status === 'conflict') {
    const message = 'The lock is held to read beside others, and was asked for to write: that would wait for itself';
    return new DeadlockError({ key, category, cycle: [{ traceId: work.traceId, key }] }, message);
  }
  if (reply.status === 'mismatch') return otherPermits(reply.permits, request.permits, { key, category });
  return new LockStoreError('The lock store had cancelled this call', { key, category, outcome: 'not-applied' });
}

/** The error for one waiter too many of a `Locks`, which is mostly the only one of its process. */
export function tooManyWaiters({ key, category }: AcquireTask): LockLimitError {
  return new LockLimitError('Too many requests of this process wait for locks', { key, category });
}

/** The error for an acquire whose time was over before it could be sent. */
export function notSent({ key, category }: AcquireTask): LockStoreError {
  const message = 'The lock store was not asked: this process stood still for longer than the acquire had time';
  return new LockStoreError(message, { key, category, outcome: 'not-applied' });
}
