import { LockStoreError } from '../../model/errors.ts';

/** The server went down meanwhile, or says itself that it does not know. */
const unclear = /^(08|57P0|58|XX|40003)/;

/** The transaction was ended in favour of another: it may be tried again. */
const conflicts = new Set(['40001', '40P01']);

/** Nothing of the schema is there, or not all: it was never made. */
const missing = new Set(['3F000', '42883', '42P01']);

/** What the functions raise for a caller of another format, and for one in another isolation level. */
const otherFormat = 'RL001';
const otherIsolation = 'RL002';

/**
 * The one place from what pg rejects with to what callers see; the message names no server and no key. `wasSent`: whether
 * the statement may have reached a server. What a server refuses has no effect: its transaction is undone.
 */
export function storeError(operation: string, cause: unknown, wasSent = true): LockStoreError {
  const state = stateOf(cause);
  const isCertain = !wasSent || isRefusal(cause);
  return new LockStoreError(messageOf(operation, state), { cause, outcome: isCertain ? 'not-applied' : 'unknown' });
}

/** Whether the server refused the statement, and nothing else is wrong: the connection may be used again. */
export function isRefusal(error: unknown): boolean {
  const state = stateOf(error);
  return state !== undefined && !unclear.test(state);
}

/** Whether the same call may go well now. */
export function isConflict(error: unknown): boolean {
  return conflicts.has(stateOf(error) ?? '');
}

/** Whether the call must be made in a transaction of its own, since those of the connection are of another level by default. */
export function isOtherIsolation(error: unknown): boolean {
  return stateOf(error) === otherIsolation;
}

/** Whether the schema is not there. */
export function isMissing(error: unknown): boolean {
  return missing.has(stateOf(error) ?? '');
}

/** Whether the schema is of another version than the caller. */
export function isOtherFormat(error: unknown): boolean {
  return stateOf(error) === otherFormat;
}

function messageOf(operation: string, state: string | undefined): string {
  if (state === undefined) return `The lock store did not answer to ${operation}`;
  if (missing.has(state)) {
    return 'Expected the schema of the lock store in the database, and it is not there, or not whole: run `store.migrate()`';
  }
  if (state === otherFormat) {
    return 'Expected the schema of the lock store to be of this version of the package, and it is of another one: run `store.migrate()` with the newest version, and restart older processes with it';
  }
  return `The lock store answered ${state} to ${operation}`;
}

/** An error of the server has its SQLSTATE; one of the connection has none, but may be an `EPIPE`. */
function stateOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(code) ? code : undefined;
}
