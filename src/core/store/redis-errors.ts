import { LockStoreError } from '../errors.ts';

/** The server says these before it runs anything. */
const refusals = new Set([
  'BUSY',
  'CLUSTERDOWN',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'NOAUTH',
  'NOPERM',
  'OOM',
  'READONLY',
  'WRONGTYPE',
]);

/** The one place from what ioredis rejects with to what callers see; the message names no server and no key. */
export function storeError(operation: string, cause: unknown): LockStoreError {
  const code = replyCode(cause);
  const words = code === undefined ? 'did not answer' : `answered ${code}`;
  return new LockStoreError(`The lock store ${words} to ${operation}`, {
    cause,
    outcome: code !== undefined && refusals.has(code) ? 'not-applied' : 'unknown',
  });
}

/** Whether the server asks for the script's source. */
export function isUnknownScript(error: unknown): boolean {
  return replyCode(error) === 'NOSCRIPT';
}

/** The first word of an error reply; undefined where the connection failed and nothing was answered. */
function replyCode(cause: unknown): string | undefined {
  if (!(cause instanceof Error) || cause.name !== 'ReplyError') return undefined;
  return /^[A-Z]+(?= |$)/.exec(cause.message)?.[0];
}
