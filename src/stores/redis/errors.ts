import { LockStoreError, otherFormatMessage } from '../../core/model/errors/failures.ts';
import { NotSentError, type RedisDriver } from './drivers/driver.ts';
import { hideCommand } from './drivers/hide-command.ts';

/** The code of a script's reply to a record of another format, before it changes anything. */
const otherFormat = 'RLFORMAT';

/** The codes of a server's replies before it accepts a call. Redis 6.2 to 8, and Valkey. */
const callRefusals = new Set([
  'ASK',
  'BUSY',
  'CLUSTERDOWN',
  'CROSSSLOT',
  'LOADING',
  'MASTERDOWN',
  'MOVED',
  'NOAUTH',
  'NOPERM',
  'REDIRECT',
  'TRYAGAIN',
]);

/** The codes that a script, too, gets before its first write, and never after it. */
const writeRefusals = new Set(['MISCONF', 'NOREPLICAS', 'OOM', 'READONLY', 'WRONGTYPE', otherFormat]);

/** How the error of a command ends that a script has called, from Redis 7.0 on. The script may have written before. */
const withinScript = / script: [0-9a-f]{40}, on @/;

/** The format in which Redis 6.2 replies with the code of a command in a script, and of an unknown command. */
const olderRefusal = /^ERR (?:unknown command|Error running script .*: -(?:MISCONF|OOM|READONLY)) /;

/** A server's refusal of a call of more than ten words before a login, instead of NOAUTH. */
const beforeLogin = /^ERR Protocol error: unauthenticated /;

/**
 * Converts an error of the Redis client to the one that callers see; the message names no server and no key. `wasSentOnce`: no
 * other copy of the refused call can have reached a server.
 */
export function storeError(driver: RedisDriver, operation: string, cause: unknown, wasSentOnce = true): LockStoreError {
  if (cause instanceof NotSentError) return notSent(operation, cause, cause.message);
  const code = beforeLogin.test(String((cause as Error | undefined)?.message)) ? 'NOAUTH' : driver.codeOf(cause);
  return new LockStoreError(messageOf(operation, code, cause, driver.cluster !== undefined), {
    cause: hideCommand(cause),
    outcome: wasSentOnce && isRefusal(code, cause) ? 'not-applied' : 'unknown',
  });
}

/** Whether a server has replied with this error before it changed anything. */
function isRefusal(code: string | undefined, cause: unknown): boolean {
  if (code === undefined) return false;
  if (writeRefusals.has(code)) return true;
  const { message } = cause as Error;
  return callRefusals.has(code) ? !withinScript.test(message) : olderRefusal.test(message);
}

/** Waits until a call can be sent. Rejects with a `LockStoreError` if the client has no connection. */
export async function connected(driver: RedisDriver, operation: string): Promise<void> {
  await driver.connection.connected().catch((cause: unknown) => {
    throw notSent(operation, cause, 'The lock store has no connection');
  });
}

function notSent(operation: string, cause: unknown, why: string): LockStoreError {
  const message = `${why}: ${operation} was not sent`;
  return new LockStoreError(message, { cause: hideCommand(cause), outcome: 'not-applied' });
}

/** What to do about a server that refuses. */
const remedies: ReadonlyMap<string, string> = new Map([
  ['BUSY', 'another script blocks it: `SCRIPT KILL` ends that'],
  ['CLUSTERDOWN', 'its cluster has a slot without a primary: repair that, as `redis-cli --cluster check` says'],
  ['LOADING', 'it still reads its data from the disk: try again when it has'],
  ['MASTERDOWN', 'it is a replica that has lost its primary: connect the client to the primary'],
  [
    'MISCONF',
    "it can't save to its disk, as its log says: repair that, or allow writes with `stop-writes-on-bgsave-error no`",
  ],
  ['NOAUTH', 'give the client the user name and the password of the server'],
  ['NOREPLICAS', 'it has fewer replicas than its `min-replicas-to-write`'],
  ['OOM', 'it is full: raise its `maxmemory`, or keep the locks on a server without other data'],
  ['READONLY', 'it is a replica: connect the client to the primary'],
  ['WRONGTYPE', 'other data is at a key of the store: choose another `prefix`'],
]);

/** The codes of a server that does not have the whole lock. */
const elsewhere = new Set(['ASK', 'MOVED', 'TRYAGAIN']);

function messageOf(operation: string, code: string | undefined, cause: unknown, isCluster: boolean): string {
  if (code === undefined) return `The lock store did not reply to ${operation}`;
  if (code === otherFormat) return otherFormatMessage;
  const right = lackingRight(code, (cause as Error).message);
  const advice = right
    ? `its user lacks ${right}. Add those that the guide of the store lists`
    : remedyOf(code, isCluster);
  return `The lock store replied ${code} to ${operation}${advice === undefined ? '' : `: ${advice}`}`;
}

function remedyOf(code: string, isCluster: boolean): string | undefined {
  if (!elsewhere.has(code)) return remedies.get(code);
  return isCluster
    ? 'its slot is between two servers: finish that move, as `redis-cli --cluster fix` does'
    : 'it belongs to a cluster: give the store a client for one, a `Cluster` of ioredis or `createCluster` of node-redis';
}

/** The right that the user lacks if a server refused a call. Redis 7.0 does not name the command of a script. */
function lackingRight(code: string, message: string): string | undefined {
  const isWithin = message.startsWith("ERR The user executing the script can't ");
  if (code !== 'NOPERM' && !isWithin) return undefined;
  const [, command] = /'([a-z|]+)' command/.exec(message) ?? [];
  if (command !== undefined) return `\`+${command}\``;
  if (/channel/.test(message)) return 'the right to its channels (`&<prefix>*`)';
  if (/key/.test(message)) return 'the right to its keys (`~<prefix>*`)';
  return 'a right that a script needs, which the warning LOCK_REDIS_RIGHTS names';
}

/** Whether a call did nothing because another version of the package wrote the record. */
export function isOtherFormat(driver: RedisDriver, error: unknown): boolean {
  return error instanceof LockStoreError && driver.codeOf(error.cause) === otherFormat;
}

/** Whether a call did nothing because its server does not have the key, or not the whole lock. */
export function isElsewhere(driver: RedisDriver, error: unknown): boolean {
  if (!(error instanceof LockStoreError) || error.outcome !== 'not-applied') return false;
  return elsewhere.has(driver.codeOf(error.cause) ?? '');
}
