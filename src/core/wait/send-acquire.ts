import type { StoreAccess } from '../client/access.ts';
import type { CallTime } from '../client/store-client.ts';
import type { LockStoreError } from '../model/errors.ts';
import type { AcquireReply } from '../model/store.ts';
import type { AcquireTask } from './task.ts';

/** Sends the acquire of a task: its first call, or a poll, which is the same call again. */
export function sendAcquire(
  access: StoreAccess,
  operation: 'acquire' | 'poll',
  { key, request, leaseMs, waitMs }: AcquireTask,
  time: CallTime,
  onReply: (reply: AcquireReply) => void,
  onError: (error: LockStoreError) => void,
): void {
  const { client, settings } = access;
  const maxWaiters = settings.maxWaitersPerKey;
  const terms = { leaseMs, queue: waitMs > 0, maxWaiters, livenessMs: livenessMs(access) };
  client.acquire(operation, key, request, terms, time, onReply, onError);
}

/** How long a process counts as live after a call about a key, in milliseconds. */
export function livenessMs({ settings }: StoreAccess): number {
  return 3 * settings.pollMs + settings.storeTimeoutMs;
}
