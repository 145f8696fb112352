import { LockStoreError } from '../../model/errors.ts';

/** The server says these before it runs anything. */
const refusals = new Set([
  'ASK',
  'BUSY',
  'CLUSTERDOWN',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'MOVED',
  'NOAUTH',
  'NOPERM',
  'OOM',
  'READONLY',
  'TRYAGAIN',
  'WRONGTYPE',
]);

/**
 * The one place from what ioredis rejects with to what callers see; the message names no server and no key. `wasSentOnce`:
 * whether no copy of the call but the one that was refused can have reached a server.
 */
export function storeError(operation: string, cause: unknown, wasSentOnce = true): LockStoreError {
  const code = replyCode(cause);
  const words = code === undefined ? 'did not answer' : `answered ${code}`;
  return new LockStoreError(`The lock store ${words} to ${operation}`, {
    cause: withoutLogin(cause),
    outcome: wasSentOnce && code !== undefined && refusals.has(code) ? 'not-applied' : 'unknown',
  });
}

/**
 * ioredis keeps with an error what was sent: of a login that was refused, which every call then gets, that is the password.
 * It stays where it is, and no log prints it.
 */
export function withoutLogin<E>(error: E): E {
  const { command } = Object(error) as { command?: { name?: unknown } };
  if (command?.name === 'auth' || command?.name === 'hello') {
    Reflect.defineProperty(Object(error), 'command', { enumerable: false });
  }
  return error;
}

/** Whether the server asks for the script's source. */
export function isUnknownScript(error: unknown): boolean {
  return replyCode(error) === 'NOSCRIPT';
}

/** Whether the client gave the call up by its `commandTimeout`. ioredis has no other name for it. */
export function isTimedOut(error: unknown): boolean {
  return error instanceof LockStoreError && (error.cause as Error | undefined)?.message === 'Command timed out';
}

/** Whether a call did nothing because its server has not got the key, or not all of the lock. */
export function isElsewhere(error: unknown): boolean {
  if (!(error instanceof LockStoreError) || error.outcome !== 'not-applied') return false;
  return ['ASK', 'MOVED', 'TRYAGAIN'].includes(replyCode(error.cause) ?? '');
}

/**
 * The first word of an error reply, the last one where a cluster's client gave up after many; undefined where the
 * connection failed and nothing was answered.
 */
function replyCode(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) return undefined;
  if (cause.name === 'ReplyError') return /^[A-Z]+(?= |$)/.exec(cause.message)?.[0];
  return /^Too many Cluster redirections\. Last error: ReplyError: ([A-Z]+)(?= |$)/.exec(cause.message)?.[1];
}
