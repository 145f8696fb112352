import { type Clock, inTime } from '../../core/base/clock.ts';

/** A pool lent no connection in time. Nothing was sent. */
export class NoConnectionError extends Error {
  constructor(ms: number) {
    super(
      `Expected the pool of the lock store to lend a connection within ${ms} ms, got none: all are in use, or the server accepts no more. Take each lock before you begin a transaction, or give the locks a pool of their own`,
    );
  }
}

/** Settles as `lent` does, or rejects with a `NoConnectionError` after `ms`. A connection that arrives later goes to `onLate`. */
export function lentInTime<C>(clock: Clock, ms: number, lent: Promise<C>, onLate: (connection: C) => void): Promise<C> {
  return inTime(clock, ms, lent, onLate, () => new NoConnectionError(Math.round(ms)));
}
