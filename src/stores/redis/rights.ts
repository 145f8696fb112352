import type { StoreListener } from '../../core/model/store.ts';
import type { RedisDriver } from './drivers/driver.ts';
import * as scripts from './scripts.generated.ts';

/**
 * Sends a warning if the user of the client lacks the right to a command that a script calls. Some commands are called only
 * while there are waiters: without the check, a missing right would cause slow hand-offs in production. `key` and `channel` are
 * examples of the store's names; `prefix` is the beginning of all its channels.
 */
export async function warnOfRights(
  driver: RedisDriver,
  prefix: string,
  [key, channel]: readonly [key: string, channel: string],
  listener: StoreListener,
): Promise<void> {
  const words = ['eval', scripts.checkRights.source, 1, key, channel, ...calledCommands()] as const;
  // Not allowed, or not connected: the lock calls themselves will fail.
  const reply = await driver.send(words).catch(() => undefined);
  if (!Array.isArray(reply) || reply.length === 0) return;
  const commands = reply.map((name) => `\`${name}\``).join(', ');
  const rights = reply.map((name) => `+${String(name).toLowerCase().replace(' ', '|')}`).join(' ');
  const line = `ACL SETUSER <user> ~${driver.keyPrefix}${prefix}* &${prefix}* ${rights}`;
  const message = `Expected the user of the lock store to have all rights that locks need, got one that may not call ${commands} on the names of the store: calls fail or hand-offs are slow, some only while there are waiters. Add the rights: \`${line}\``;
  listener({ kind: 'warning', code: 'LOCK_REDIS_RIGHTS', message });
}

/** The commands that the scripts need, such as `ZADD` and `PUBSUB NUMSUB`; not those that they try by `pcall`. */
function calledCommands(): string[] {
  const sources = Object.values(scripts).map((script) => ('source' in script ? script.source : ''));
  const calls = sources.join('\n').matchAll(/redis\.call\('([A-Z]+)'(?:, '(NUMSUB)')?/g);
  return [...new Set(Array.from(calls, ([, name, sub]) => (sub === undefined ? String(name) : `${name} ${sub}`)))];
}
