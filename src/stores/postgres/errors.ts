import { LockStoreError } from '../../core/model/errors/failures.ts';
import { LockKeyError } from '../../core/model/errors/mistakes.ts';
import { NoConnectionError } from '../pool/no-connection.ts';

/** The server shut down, or does not know whether the statement was applied. */
const unclear = /^(08|57P0|58|XX|40003)/;

/** The server has aborted the transaction because of another one. It may be tried again. */
const conflicts = new Set(['40001', '40P01']);

/** The schema is missing, or a part of it. */
const missing = new Set(['3F000', '42883', '42P01']);

/** The SQL functions raise these if the caller has another format, another isolation level, or another encoding. */
const otherFormat = 'RL001';
const otherIsolation = 'RL002';
const otherEncoding = 'RL003';

/** The database can't store a character of a key. */
const unknownCharacter = '22P05';

/** A text is not in the client encoding of its connection, which is not the one that pg sends. */
const badBytes = '22021';

const missingSchema =
  'Expected the schema of the lock store in the database, but it is missing or incomplete: run `store.migrate()`';

/** Those errors, a lock that the statement waited for in vain, and a server that has no room. */
const aboutLock = new Set([otherFormat, otherIsolation, unknownCharacter, '55P03', '53100', '53200', '53400']);

/** A transaction that is open, has failed, or may only read; a role without rights; an encoding. */
const leftBehind = new RegExp(`^(25|2D000|42501|${badBytes}|${otherEncoding})`);

/**
 * Converts an error of pg to the one that callers see. Its message names no server and no key. `wasSent`: the statement may have
 * reached the server. A statement that the server refuses has no effect: its transaction is rolled back. `whenMissing`: the message
 * if a table is missing.
 */
export function storeError(
  operation: string,
  cause: unknown,
  wasSent = true,
  whenMissing: string = missingSchema,
): LockStoreError {
  const state = stateOf(cause);
  const isCertain = !wasSent || isRefusal(cause);
  const isAboutPool = cause instanceof OpenTransactionError || cause instanceof NoConnectionError;
  const message = isAboutPool ? cause.message : messageOf(operation, state, whenMissing);
  if (state === unknownCharacter) {
    return new LockStoreError(message, { cause: new LockKeyError(message, { cause }), outcome: 'not-applied' });
  }
  return new LockStoreError(message, { cause, outcome: isCertain ? 'not-applied' : 'unknown' });
}

/**
 * Whether the server refused the statement for its content or because of other transactions: then the connection may be used
 * again. The connection itself may have caused any other error.
 */
export function isAboutLock(error: unknown): boolean {
  const state = stateOf(error);
  return state !== undefined && (aboutLock.has(state) || missing.has(state) || conflicts.has(state));
}

/** Whether an earlier borrower's state on the connection may have caused the error. The statement had no effect. */
export function isLeftBehind(error: unknown): boolean {
  return error instanceof OpenTransactionError || leftBehind.test(stateOf(error) ?? '');
}

/** The statement ran in another transaction. That is rolled back, and the statement with it. */
export class OpenTransactionError extends Error {
  constructor() {
    super(
      'Expected a connection of the pool without an open transaction, got one with an open transaction, from its previous use: end each transaction before you release its connection',
    );
  }
}

/** Whether the same statement may succeed if it is sent again. */
export function isConflict(error: unknown): boolean {
  return conflicts.has(stateOf(error) ?? '');
}

/** Whether the statement needs an explicit transaction, because the default isolation level is not the one it needs. */
export function isOtherIsolation(error: unknown): boolean {
  return stateOf(error) === otherIsolation;
}

/** Whether the server refused the statement: then it had no effect. */
function isRefusal(error: unknown): boolean {
  const state = stateOf(error);
  return state !== undefined && !unclear.test(state);
}

/** Whether the schema is missing. */
export function isMissing(error: unknown): boolean {
  return missing.has(stateOf(error) ?? '');
}

/** Whether the schema has another format than the caller. */
export function isOtherFormat(error: unknown): boolean {
  return stateOf(error) === otherFormat;
}

function messageOf(operation: string, state: string | undefined, whenMissing: string): string {
  if (state === undefined) return `The lock store did not reply to ${operation}`;
  if (missing.has(state)) return whenMissing;
  if (state === otherFormat) {
    return 'Expected the schema of the lock store to have the format of this version of the package, got another one: run `store.migrate()` with the newest version, and restart older processes with that version';
  }
  if (state === unknownCharacter) {
    return 'Expected a lock key whose characters the database can store, got one that its encoding lacks: use a database in UTF8, or keys in ASCII';
  }
  if (state === otherEncoding || state === badBytes) {
    return 'Expected the client encoding of the connection to be UTF8, which pg sends, got another one: remove the `SET client_encoding`';
  }
  if (state === '25006') {
    return 'Expected sessions that may write, got one that may only read: connect the pool to the primary, and remove `default_transaction_read_only`';
  }
  if (state === '42501') {
    return 'Expected a role with the rights that the lock store needs, got one that lacks a right: grant those that the guide of the store lists';
  }
  return `The lock store replied ${state} to ${operation}`;
}

/** Errors of the server have a SQLSTATE. Errors of the connection have none; their code may be `EPIPE`, for example. */
function stateOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(code) ? code : undefined;
}
