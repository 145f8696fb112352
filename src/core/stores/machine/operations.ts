import type {
  AcquireReply,
  AcquireTerms,
  HoldRequest,
  InspectReply,
  ReleaseReply,
  ReleaseTerms,
  RenewReply,
  RenewTerms,
  StoreMessage,
  TransferReply,
  TransferTerms,
  WaitReply,
} from '../../model/store.ts';
import { asGrant, type LockContext, type MemoryHold, type MemoryLock } from './lock-state.ts';

/** What the operations need from the store that keeps the lock. */
export interface LockHost extends LockContext {
  /** Sends a message once the operation has taken effect; never synchronously. */
  tell(process: string, message: StoreMessage): void;
  /** The status of the release of a hold id, as long as that is remembered. */
  buried(holdId: string): ReleaseReply['status'] | undefined;
  bury(request: HoldRequest, status: ReleaseReply['status'], tombstoneMs: number): void;
}

/** Grants, queues or refuses (C1 to C8, C16, C19 to C22); also the poll. */
export function acquire(lock: MemoryLock, host: LockHost, request: HoldRequest, terms: AcquireTerms): AcquireReply {
  const { nowMs } = host;
  lock.dropExpired(nowMs);
  if (host.buried(request.holdId) !== undefined) {
    return { status: 'cancelled', nowMs, claims: lock.claimsOf(request.process, request.holdId) };
  }
  const isNew = !lock.queue.has(request.holdId);
  if (!isNew) lock.markLive(request.process, nowMs + terms.livenessMs);
  const isBlocked = lock.queue.size > 0 && (lock.hasWriter || handOff(lock, host));

  const hold = lock.holds.get(request.holdId) ?? enter(lock, host, request, terms, isBlocked);
  const claims = lock.claimsOf(request.process, request.holdId);
  if (hold !== undefined) {
    return { status: 'granted', grant: asGrant(hold), otherHolds: lock.holdsOf(request.owner) - 1, nowMs, claims };
  }
  const leaseRemainingMs = lock.leaseRemainingMs(nowMs);
  const position = isNew ? lock.queue.size : [...lock.queue.keys()].indexOf(request.holdId);
  // The owner reads beside others and asks to write: it would wait for its own hold, and for others that do the same.
  if (isNew && lock.holdsOf(request.owner) > 0)
    return { status: 'conflict', leaseRemainingMs, position, nowMs, claims };
  if (!terms.queue) return { status: 'refused', leaseRemainingMs, position, nowMs, claims };
  const isNewestLost = terms.newest && !lock.queue.has(terms.newest.holdId);
  if (!isNew) return { status: 'queued', isNew, leaseRemainingMs, position, isNewestLost, nowMs, claims };
  if (lock.queue.size >= terms.maxWaiters) return { status: 'full', leaseRemainingMs, position, nowMs, claims };
  const place = lock.enqueue(request, terms, nowMs);
  return { status: 'queued', isNew, leaseRemainingMs, position: place, isNewestLost, nowMs, claims };
}

/** Makes a lease end later (C10). */
export function renew(lock: MemoryLock, nowMs: number, request: HoldRequest, terms: RenewTerms): RenewReply {
  const hold = lock.holds.get(request.holdId);
  if (hold === undefined || hold.endMs <= nowMs) return { status: 'lost' };
  if (hold.fence !== terms.fence && !(hold.isRaised && terms.fence < hold.fence)) return { status: 'lost' };
  hold.endMs = Math.max(hold.endMs, nowMs + terms.leaseMs);
  hold.isClaim = false;
  return { status: 'renewed', endMs: hold.endMs, nowMs };
}

/** Removes a hold or a queue entry, and hands the lock to the next waiter (C7, C9, C14). */
export function release(lock: MemoryLock, host: LockHost, request: HoldRequest, terms: ReleaseTerms): ReleaseReply {
  const { nowMs } = host;
  const { holdId, process } = request;
  const removed = remove(lock, holdId, nowMs);
  // A hold id with a tombstone has no hold and no queue entry.
  const before = removed === 'absent' ? host.buried(holdId) : undefined;
  const status = before ?? removed;
  if (before === undefined) {
    if (terms.tombstoneMs > 0) host.bury(request, status, terms.tombstoneMs);
    if (!lock.hasWriter) handOff(lock, host);
  }
  return { status, nowMs, claims: lock.claimsOf(process, holdId) };
}

/** Passes a hold on to another hold id (C29). */
export function transfer(
  lock: MemoryLock,
  host: LockHost,
  from: HoldRequest,
  to: HoldRequest,
  { leaseMs, tombstoneMs }: TransferTerms,
): TransferReply {
  const { nowMs } = host;
  lock.dropExpired(nowMs);
  let hold = lock.holds.get(to.holdId);
  if (hold === undefined) {
    if (!lock.holds.has(from.holdId) || host.buried(to.holdId) !== undefined) return { status: 'lost' };
    if (to.mode === 'write' ? lock.holds.size > 1 : lock.hasWriter) return { status: 'shared' };
    lock.holds.delete(from.holdId);
    host.bury(from, 'released', tombstoneMs);
    hold = lock.grant(to, nowMs + leaseMs, false, host);
  }
  return { status: 'granted', grant: asGrant(hold), nowMs };
}

/** Returns the holds and waiters. Changes nothing (C17). */
export function inspect(lock: MemoryLock, nowMs: number): InspectReply {
  const holds = [...lock.holds.values()].filter((hold) => hold.endMs > nowMs);
  return {
    nowMs,
    holds: holds.map((hold) => {
      const { owner, process, mode } = hold.request;
      return { ...asGrant(hold), owner, process, mode };
    }),
    waiters: [...lock.queue.values()].map(({ request: { holdId, owner, process, mode, priority }, sinceMs }) => ({
      holdId,
      owner,
      process,
      mode,
      priority,
      sinceMs,
    })),
  };
}

/** Returns since when a hold id waits, if it does, and the holds that it waits for (C27). */
export function wait(lock: MemoryLock, nowMs: number, { holdId }: HoldRequest): WaitReply {
  const holds = [...lock.holds.values()].filter((hold) => hold.endMs > nowMs);
  return {
    sinceMs: lock.queue.get(holdId)?.sinceMs,
    holds: holds.map(({ request, fence }) => ({ holdId: request.holdId, owner: request.owner, fence })),
  };
}

/** Takes the lock from every hold with this fence, and hands it to the next waiter (C15). */
export function forceRelease(lock: MemoryLock, host: LockHost, fence: number): boolean {
  lock.dropExpired(host.nowMs);
  if (lock.fence !== fence) return false;
  const taken = [...lock.holds.values()];
  lock.holds.clear();
  handOff(lock, host);
  for (const { request } of taken) host.tell(request.process, { kind: 'lost', holdId: request.holdId });
  return true;
}

/** Grants a key that is free or shared, if no live waiter comes first. An owner that has the key gets it in any case. */
function enter(
  lock: MemoryLock,
  host: LockHost,
  request: HoldRequest,
  terms: AcquireTerms,
  isBlocked: boolean,
): MemoryHold | undefined {
  const { owner, mode } = request;
  if (!lock.admits(owner, mode) || (isBlocked && lock.holdsOf(owner) === 0)) return undefined;
  lock.dequeue(request.holdId);
  return lock.grant(request, host.nowMs + terms.leaseMs, false, host, terms.minFence);
}

/** Returns whether a live waiter is left that the holds do not admit. */
function handOff(lock: MemoryLock, host: LockHost): boolean {
  const { granted, isBlocked } = lock.handOff(host);
  for (const hold of granted) {
    const { process } = hold.request;
    // With the present fence: a later grant of this hand-off may have raised it.
    if (process !== host.caller) host.tell(process, { kind: 'granted', grant: asGrant(hold) });
  }
  return isBlocked;
}

function remove(lock: MemoryLock, holdId: string, nowMs: number): ReleaseReply['status'] {
  const isKnown = lock.holds.has(holdId);
  lock.dropExpired(nowMs);
  if (!isKnown) return lock.dequeue(holdId) ? 'cancelled' : 'absent';
  return lock.holds.delete(holdId) ? 'released' : 'expired';
}
