import { elapsedMs, type Instant } from './clock.ts';

/** A local deadline: `spanMs` after `start`, judged on both clocks. */
export interface Deadline {
  readonly start: Instant;
  readonly spanMs: number;
}

/** How far clocks may drift apart during a lease, with a little for the last step. */
const driftShare = 0.01;
const driftMs = 2;

/**
 * The local deadline of a lease that ends `spanMs` after the store read its clock. `sent` is from before the call was sent: the
 * store read its clock later, therefore the deadline is never late.
 */
export function leaseDeadline(sent: Instant, spanMs: number): Deadline {
  return { start: sent, spanMs: spanMs - spanMs * driftShare - driftMs };
}

/** Milliseconds left; negative when the deadline has passed. */
export function remainingMs(now: Instant, deadline: Deadline): number {
  return deadline.spanMs - elapsedMs(now, deadline.start);
}

/** The later of two deadlines: no operation moves a lease end nearer. */
export function laterDeadline(now: Instant, a: Deadline, b: Deadline): Deadline {
  return remainingMs(now, a) >= remainingMs(now, b) ? a : b;
}

/** The earlier of two deadlines. */
export function earlierDeadline(now: Instant, a: Deadline, b: Deadline): Deadline {
  return remainingMs(now, a) < remainingMs(now, b) ? a : b;
}
