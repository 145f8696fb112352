import type { Instant } from '../base/clock.ts';
import { type Deadline, earlierDeadline, leaseDeadline, remainingMs } from '../base/deadline.ts';
import { LockStoreError } from '../model/errors/failures.ts';
import type { WaiterGrant } from '../model/store.ts';
import type { NamedLock } from './calls.ts';

/** A grant of the store, on this machine's clocks. */
export interface Granted {
  readonly fence: number;
  readonly deadline: Deadline;
  readonly receivedAt: Instant;
  /** Whether it was handed off: the lease is a claim until its first renewal. */
  readonly isClaim: boolean;
  /** How many other holds its family has in the store; undefined if the reply has no number. */
  readonly otherHolds: number | undefined;
  /** How many of those have the very same owner, without readers beside a reader. */
  readonly equalHolds: number | undefined;
}

/** When the call of a reply was sent, and the store's time in that reply. */
export interface ReplyTimestamp {
  readonly sent: Instant;
  readonly nowMs: number;
}

/** The part of a reply that grants. */
interface GrantReply {
  readonly grant: WaiterGrant;
  readonly nowMs: number;
}

/**
 * A grant in the reply to its own call; undefined if its lease had expired on arrival. It never lasts longer than the
 * requested `leaseMs`, even if the store's clock was set back.
 */
export function grantedByReply(
  { grant, nowMs }: GrantReply,
  sent: Instant,
  receivedAt: Instant,
  leaseMs: number,
): Granted | undefined {
  const deadline = leaseDeadline(sent, Math.min(grant.endMs - nowMs, leaseMs));
  // Not `<= 0`, nor `<` below: an end that is not a number counts as expired.
  if (!(remainingMs(receivedAt, deadline) > 0)) return undefined;
  const { fence, isClaim, otherHolds, equalHolds } = grant;
  return { fence, deadline, receivedAt, isClaim, otherHolds, equalHolds };
}

/** The error for a grant whose lease had expired when it arrived. */
export function grantedTooLate({ key, category }: NamedLock): LockStoreError {
  const message = 'The lock store replied after the lease had expired; raise `leaseMs`';
  return new LockStoreError(message, { key, category, outcome: 'unknown' });
}

/**
 * A claim from a message, or from the reply to another call. Its deadline follows from the latest reply about its lock, and
 * is never later than `claimMs` after the message arrived. Undefined unless a third of the claim is certainly left: then only
 * the store knows.
 */
export function grantedByMessage(
  grant: WaiterGrant,
  latest: ReplyTimestamp,
  receivedAt: Instant,
  now: Instant,
  claimMs: number,
): Granted | undefined {
  const byReply = leaseDeadline(latest.sent, grant.endMs - latest.nowMs);
  const byReceipt = { start: receivedAt, spanMs: claimMs };
  const leftMs = Math.min(remainingMs(now, byReply), remainingMs(now, byReceipt));
  if (!(leftMs >= claimMs / 3)) return undefined;
  const deadline = earlierDeadline(now, byReply, byReceipt);
  const { fence, otherHolds, equalHolds } = grant;
  return { fence, deadline, receivedAt, isClaim: true, otherHolds, equalHolds };
}
