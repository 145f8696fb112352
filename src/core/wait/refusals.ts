import { lastedMs, wholeMs } from '../base/clock.ts';
import type { StoreAccess } from '../client/access.ts';
import type { HoldTimes } from '../client/hold-times.ts';
import type { StoreClient } from '../client/store-client.ts';
import { LockStoreError } from '../model/errors/failures.ts';
import type { LockHolder } from '../model/errors/lock-holder.ts';
import { DeadlockError, LockLimitError, LockTimeoutError } from '../model/errors/refusals.ts';
import type { LockName } from '../model/key.ts';
import { lockInfo } from '../model/lock-info.ts';
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

/** How long a turn of the task's key lasts, if known: with permits, several owners hold it at once. */
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
  const { key, category, work } = waiter.task;
  if (reply.status === 'full') {
    const message = 'Too many requests wait for this lock';
    const retryAfterMs = retryAfterRefusal(waiter, reply, queue, holdTimes);
    return new LockLimitError(message, { key, category, retryAfterMs });
  }
  if (reply.status === 'conflict') {
    const message =
      'The request reads with others and asked to write: it would wait for its own read lock. Release that one first, or ask to write from the start';
    return new DeadlockError({ key, category, cycle: [{ traceId: work.traceId, key }] }, message);
  }
  return new LockStoreError('The lock store had cancelled this call', { key, category, outcome: 'not-applied' });
}

/** The error when a `Locks`, mostly the only one of its process, has `maxWaiters` waiters. */
export function tooManyWaiters({ key, category }: AcquireTask): LockLimitError {
  return new LockLimitError('Too many requests of this process wait for locks', { key, category });
}

/** The error for an acquire whose time ended before it could be sent. */
export function notSent({ key, category }: AcquireTask): LockStoreError {
  const message = 'The lock store was not asked: this process was blocked for longer than `waitMs` allows';
  return new LockStoreError(message, { key, category, outcome: 'not-applied' });
}

/** The error for an acquire whose time has ended, with the holder if it is known to wait for one. Never rejects. */
export async function timeoutOf(access: StoreAccess, waiter: Waiter): Promise<LockTimeoutError> {
  const { task, queue } = waiter;
  const { key, category } = task;
  const waitedMs = wholeMs(access.clock.now(), task.startedAt);
  const retryAfterMs = queue?.retryAfterMs(waiter, typicalMs(task, access.holdTimes)) ?? 0;
  const holder = queue && (await holderOf(access, queue, task));
  return new LockTimeoutError({ key, category, waitedMs, retryAfterMs, holder, heldBy: task.heldBy(holder) });
}

/** At most this late is the error of an acquire that gives up. */
const lookTimeoutMs = 50;

/** Many may give up at the same time: the store is asked once for each key in this time. */
const lookEveryMs = 1000;

/** The holder of the key for which a waiter gives up, if the store replies at once. Never rejects. */
async function holderOf(
  { client, clock }: StoreAccess,
  queue: WaitQueue,
  { key, category, request }: AcquireTask,
): Promise<LockHolder | undefined> {
  const now = clock.now();
  let last = queue.holderLook;
  if (last === undefined || lastedMs(now, last.at) >= lookEveryMs) {
    last = { at: now, holder: look(client, { key, category, id: request.id }) };
    queue.holderLook = last;
  }
  const { at, holder } = last;
  const found = await holder;
  return found && { ...found, heldMs: found.heldMs + wholeMs(now, at) };
}

async function look(client: StoreClient, name: LockName): Promise<LockHolder | undefined> {
  if (!client.outage.isConnected) return undefined;
  try {
    const reply = await client.look(name.id, lookTimeoutMs);
    // A reply may list a thousand of each.
    const [hold] = lockInfo(name, { ...reply, holds: reply.holds.slice(0, 1), waiters: [] }).holds;
    if (hold === undefined) return undefined;
    const { traceId, branch, instance, heldMs } = hold;
    return { traceId, branch, instance, heldMs, waiters: reply.waiters.length };
  } catch {
    // The acquire has timed out, whatever this call does.
    return undefined;
  }
}
