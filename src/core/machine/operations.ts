import { isAncestor } from '../model/owner.ts';
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
} from '../model/store.ts';
import { type Holds, limitOf, type MemoryHold } from './holds.ts';
import type { HandOff, LockContext, MemoryLock } from './lock-state.ts';
import type { MemoryWaiter } from './queue.ts';

/** The store that keeps the lock, for the operations. */
export interface LockHost extends LockContext {
  /** Sends a message once the operation has taken effect; never synchronously. */
  send(process: string, message: StoreMessage): void;
  /** The status of the release of a hold id, while it is remembered. */
  buried(holdId: string): ReleaseReply['status'] | undefined;
  bury(request: HoldRequest, status: ReleaseReply['status'], tombstoneMs: number): void;
}

/** Grants, queues or refuses (C1 to C8, C16, C19 to C22, C30); also the poll. */
export function acquire(lock: MemoryLock, host: LockHost, request: HoldRequest, terms: AcquireTerms): AcquireReply {
  const { nowMs } = host;
  const { holdId, owner, process } = request;
  lock.dropExpired(nowMs);
  const isNew = lock.waiter(holdId) === undefined;
  const isPoll = !isNew || lock.holds.get(holdId) !== undefined;
  // The claims that this call made; for a poll, all open ones of its process.
  const claimsWith = (granted: readonly MemoryHold[]) =>
    isPoll ? lock.claimsOf(process, holdId, granted) : lock.claimsAmong(process, holdId, granted);
  if (host.buried(holdId) !== undefined) return { status: 'cancelled', nowMs, claims: claimsWith([]) };
  if (!isNew) lock.markLive(process, nowMs + terms.livenessMs);
  const { granted, next } = handOff(lock, host);

  const asGranted = (hold: MemoryHold, joined: readonly MemoryHold[]): AcquireReply => ({
    status: 'granted',
    grant: lock.toWaiterGrant(hold),
    nowMs,
    claims: claimsWith([...granted, ...joined]),
  });
  const known = lock.holds.get(holdId);
  if (known !== undefined) return asGranted(known, []);
  const entered = enter(lock, host, request, terms, next !== undefined);
  if (entered !== undefined) return asGranted(entered, sendGrants(host, lock, lock.handOffWithin(owner, host)));
  const claims = claimsWith(granted);
  const leaseRemainingMs = lock.holds.remainingMs(nowMs);
  const position = lock.positionOf(holdId);
  if (isNew && wouldWaitForItself(lock.holds, request))
    return { status: 'conflict', leaseRemainingMs, position, nowMs, claims };
  if (!terms.queue) return { status: 'refused', leaseRemainingMs, position, nowMs, claims };
  const isNewestLost = terms.newest && lock.waiter(terms.newest.holdId) === undefined;
  if (!isNew) return { status: 'queued', isNew, leaseRemainingMs, position, isNewestLost, nowMs, claims };
  if (lock.queueSize >= terms.maxWaiters) return { status: 'full', leaseRemainingMs, position, nowMs, claims };
  const place = lock.enqueue(request, terms, nowMs);
  // A reader that is ahead of a waiting writer, by its priority, joins the readers: it has its turn.
  const first = place === 0 ? enter(lock, host, request, terms, false) : undefined;
  if (first !== undefined) return asGranted(first, sendGrants(host, lock, lock.handOffWithin(owner, host)));
  return { status: 'queued', isNew, leaseRemainingMs, position: place, isNewestLost, nowMs, claims };
}

/** Makes a lease end later (C10). */
export function renew(lock: MemoryLock, nowMs: number, request: HoldRequest, terms: RenewTerms): RenewReply {
  const hold = lock.holds.get(request.holdId);
  if (hold === undefined || hold.endMs <= nowMs) return { status: 'lost' };
  if (terms.fence < hold.fence || terms.fence > lock.fence) return { status: 'lost' };
  lock.holds.renew(hold, Math.max(hold.endMs, nowMs + terms.leaseMs));
  return { status: 'renewed', endMs: hold.endMs, nowMs };
}

/** Removes a hold or a queue entry, and hands the lock to the next waiter (C7, C9, C14). */
export function release(lock: MemoryLock, host: LockHost, request: HoldRequest, terms: ReleaseTerms): ReleaseReply {
  const { nowMs } = host;
  const { holdId, process } = request;
  const removed = remove(lock, holdId, nowMs);
  // A hold id with a tombstone has no hold and no queue entry.
  const before = removed === 'absent' ? host.buried(holdId) : undefined;
  if (before !== undefined) return { status: before, nowMs, claims: [] };
  if (terms.tombstoneMs > 0) host.bury(request, removed, terms.tombstoneMs);
  const { granted } = handOff(lock, host);
  return { status: removed, nowMs, claims: lock.claimsAmong(process, holdId, granted) };
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
    const before = lock.holds.get(from.holdId);
    if (before === undefined || host.buried(to.holdId) !== undefined) return { status: 'lost' };
    // To an ancestor: nobody else had the key in between.
    const isInherited = isAncestor(to.owner, from.owner);
    if (!isInherited && isShared(lock.holds, from)) return { status: 'shared' };
    lock.holds.delete(from.holdId);
    host.bury(from, 'released', tombstoneMs);
    if (isInherited) {
      hold = { request: to, fence: before.fence, endMs: Math.max(before.endMs, nowMs + leaseMs), isClaim: false };
      lock.holds.add(hold);
    } else {
      hold = lock.grant(to, nowMs + leaseMs, false, host);
    }
    // Of permits there may be one owner less now.
    handOff(lock, host);
    sendGrants(host, lock, lock.handOffWithin(to.owner, host));
  }
  return { status: 'granted', grant: lock.asGrant(hold), nowMs };
}

/** At most this many holds or waiters are listed. */
const maxListed = 1_000;

/** Returns the holds and waiters. Changes nothing (C17). */
export function inspect(lock: MemoryLock, nowMs: number): InspectReply {
  const holds = lock.holds.first(maxListed, nowMs);
  const waiters: MemoryWaiter[] = [];
  for (const waiter of lock.waiters) if (waiters.push(waiter) === maxListed) break;
  return {
    nowMs,
    permits: [...holds, ...waiters].find(({ request }) => request.permits !== undefined)?.request.permits,
    holds: holds.map((hold) => {
      const { owner, process, mode } = hold.request;
      return { ...lock.asGrant(hold), owner, process, mode };
    }),
    waiters: waiters.map(({ request: { holdId, owner, process, mode, priority }, sinceMs }) => ({
      holdId,
      owner,
      process,
      mode,
      priority,
      sinceMs,
    })),
  };
}

/** Returns since when a hold id waits, if it does, and the holds of the key (C27). */
export function wait(lock: MemoryLock, nowMs: number, { holdId }: HoldRequest): WaitReply {
  const holds = lock.holds.first(maxListed, nowMs);
  return {
    sinceMs: lock.waiter(holdId)?.sinceMs,
    holds: holds.map(({ request }) => ({ holdId: request.holdId, owner: request.owner, fence: lock.fence })),
  };
}

/** Takes the lock from every hold with this fence, and hands it to the next waiter (C15). */
export function forceRelease(lock: MemoryLock, host: LockHost, fence: number): boolean {
  lock.dropExpired(host.nowMs);
  if (lock.holds.size === 0 || lock.fence !== fence) return false;
  const taken = lock.holds.all;
  for (const { request } of taken) lock.holds.delete(request.holdId);
  handOff(lock, host);
  for (const { request } of taken) host.send(request.process, { kind: 'lost', holdId: request.holdId });
  return true;
}

/** Grants what the holds admit, if no live waiter comes first. One that is nested in a holder overtakes the queue. */
function enter(
  lock: MemoryLock,
  host: LockHost,
  request: HoldRequest,
  terms: AcquireTerms,
  isBlocked: boolean,
): MemoryHold | undefined {
  if (!lock.holds.admits(request) || (isBlocked && lock.holds.familyOf(request.owner) === 0)) return undefined;
  lock.dequeue(request.holdId);
  return lock.grant(request, host.nowMs + terms.leaseMs, false, host, terms.minFence);
}

/** Whether a hold can't pass to another owner: another hold of its branch stays, and the two might be one owner too many. */
function isShared(holds: Holds, { holdId, owner }: HoldRequest): boolean {
  if (holds.limit === Number.POSITIVE_INFINITY) return false;
  return holds.all.some(
    ({ request }) =>
      request.holdId !== holdId && (isAncestor(request.owner, owner) || isAncestor(owner, request.owner)),
  );
}

/**
 * Whether an acquire would wait for its own hold: the owner or an ancestor reads alongside others and asks to write, and the
 * others may do the same.
 */
function wouldWaitForItself(holds: Holds, request: HoldRequest): boolean {
  return holds.familyOf(request.owner) > 0 && limitOf(request) < holds.limit;
}

/** Hands off, and sends the grants to the processes of the waiters. */
function handOff(lock: MemoryLock, host: LockHost): HandOff {
  const result = lock.handOff(host);
  sendGrants(host, lock, result.granted);
  if (result.isUnfinished && result.next !== undefined) {
    const { process, holdId } = result.next;
    host.send(process, { kind: 'next', holdId });
  }
  return result;
}

/** Sends grants to their processes. The calling process finds its own in the reply. */
function sendGrants(host: LockHost, lock: MemoryLock, granted: readonly MemoryHold[]): readonly MemoryHold[] {
  for (const hold of granted) {
    const { process } = hold.request;
    // With the present fence: a later grant of this call may have raised it.
    if (process !== host.caller) host.send(process, { kind: 'granted', grant: lock.toWaiterGrant(hold) });
  }
  return granted;
}

function remove(lock: MemoryLock, holdId: string, nowMs: number): ReleaseReply['status'] {
  const isKnown = lock.holds.get(holdId) !== undefined;
  lock.dropExpired(nowMs);
  if (!isKnown) return lock.dequeue(holdId) ? 'cancelled' : 'absent';
  return lock.holds.delete(holdId) ? 'released' : 'expired';
}
