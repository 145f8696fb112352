import type { Instant } from '../base/clock.ts';
import { type Deadline, earlierDeadline, leaseDeadline, remainingMs } from '../base/deadline.ts';
import { LockStoreError } from '../model/errors.ts';
import type { WaiterGrant } from '../model/store.ts';
import type { NamedLock } from './store-client.ts';

/** What the store said when it granted, on this machine's clocks. */
export interface Granted {
  readonly fence: number;
  readonly deadline: Deadline;
  readonly receivedAt: Instant;
  /** Handed off: the lease is a claim until its first renewal. */
  readonly isClaim: boolean;
  /** How many other holds its family has in the store; undefined if the store did not say. */
  readonly otherHolds: number | undefined;
  /** How many of those have the very same owner. */
  readonly equalHolds: number | undefined;
}

/** A reply about a lock: when its call was sent, and what the store's clock said when it answered. */
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
 * A grant in the reply to its own call; undefined if its lease was over on arrival. It lasts no longer than the `leaseMs`
 * that were asked for, even if the store says so after its clock was set back.
 */
export function grantedByReply(
  { grant, nowMs }: GrantReply,
  sent: Instant,
  receivedAt: Instant,
  leaseMs: number,
): Granted | undefined {
  const deadline = leaseDeadline(sent, Math.min(grant.endMs - nowMs, leaseMs));
  // Not `<= 0`, nor `<` below: an end that is not a number is over.
  if (!(remainingMs(receivedAt, deadline) > 0)) return undefined;
  const { fence, isClaim, otherHolds, equalHolds } = grant;
  return { fence, deadline, receivedAt, isClaim, otherHolds, equalHolds };
}

/** The error for a grant that was over when it arrived. */
export function grantedTooLate({ key, category }: NamedLock): LockStoreError {
  const message = 'The lock store replied after the lease had expired; raise `leaseMs`';
  return new LockStoreError(message, { key, category, outcome: 'unknown' });
}

/**
 * A claim that came by message, or in the reply to another call. Its deadline follows from the latest reply about its
 * lock, and is never later than `claimMs` after the message came. Undefined if it can't be shown to have a third of the
 * claim left: the store must be asked.
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
