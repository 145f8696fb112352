import { LockStoreError } from '../../core/model/errors/failures.ts';
import { NoConnectionError } from '../pool/no-connection.ts';

/** The server's errors if another transaction was faster: a duplicate key, a lock, a deadlock, a changed row. */
const conflicts = new Set([1020, 1062, 1205, 1213]);

/** The server shuts down, ends the connection, fails at the commit, or does not know. Client errors have other numbers. */
const unclear = new Set([1053, 1105, 1152, 1158, 1159, 1160, 1161, 1180, 1184, 1927]);

/** A session that only reads. An earlier borrower of the connection may have set that. */
const readOnlySession = 1792;
const readOnlyServer = new Set([1290, 1836]);
const noTable = 1146;
const noRight = 1142;
const tooLarge = 1153;

/** Another transaction was faster. The statement had no effect. */
export function isConflict(error: unknown): boolean {
  return conflicts.has(numberOf(error) ?? 0);
}

/** Whether an earlier borrower's state on the connection may have caused the error. The statement had no effect. */
export function isLeftBehind(error: unknown): boolean {
  return error instanceof LeftBehindError || numberOf(error) === readOnlySession;
}

/** A connection is in another transaction than the statement's own. That is rolled back, and the statement with it. */
export class LeftBehindError extends Error {
  constructor(hasAutocommit: boolean) {
    super(
      hasAutocommit
        ? 'Expected a connection of the pool without an open transaction, got one with an open transaction, from its previous use: end each transaction before you release its connection'
        : 'Expected a connection of the pool with autocommit, got one without it: set `autocommit = 1`, on the server, in its `init_connect`, and before you release a connection, or give the locks a pool of their own',
    );
  }
}

/**
 * Converts an error of mysql2 to the one that callers see. Its message names no server and no key. `wasSent`: the statement may
 * have reached the server. A statement that the server refuses has no effect.
 */
export function storeError(cause: unknown, wasSent: boolean): LockStoreError {
  const number = numberOf(cause);
  const isRefusal = number !== undefined && !unclear.has(number);
  const isCertain = !wasSent || isRefusal || cause instanceof LeftBehindError;
  return new LockStoreError(messageOf(cause, number), { cause, outcome: isCertain ? 'not-applied' : 'unknown' });
}

function messageOf(cause: unknown, number: number | undefined): string {
  if (cause instanceof LeftBehindError || cause instanceof NoConnectionError) return cause.message;
  if (number === noTable) {
    return 'Expected the table of the lock store in the database, but it is missing: run the SQL of `mysqlCasTable()`';
  }
  if (number === noRight) {
    return "Expected a user with the rights to the lock store's table, got one that lacks a right: grant SELECT, INSERT, UPDATE and DELETE";
  }
  if (number === readOnlySession || readOnlyServer.has(number ?? 0)) {
    return 'Expected sessions that may write, got one that may only read: connect the pool to the primary, and remove `transaction_read_only`';
  }
  if (number === tooLarge) {
    return 'Expected the server to accept the record of a lock, twice in one statement, got one whose `max_allowed_packet` is smaller: raise it, or lower `maxWaitersPerKey`';
  }
  return number === undefined ? 'The lock store did not reply' : `The lock store replied with error ${number}`;
}

/** Errors of the server have a number and a state. Errors of the connection have no state. */
function numberOf(error: unknown): number | undefined {
  const { errno, sqlState, fatal } = (error ?? {}) as { errno?: unknown; sqlState?: unknown; fatal?: unknown };
  return typeof errno === 'number' && typeof sqlState === 'string' && fatal !== true ? errno : undefined;
}
