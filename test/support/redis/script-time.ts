import type { Redis } from 'ioredis';
import * as scripts from '../../../src/core/stores/redis/scripts.generated.ts';

/** A script whose time is that of `setScriptTime`, in place of the server's. */
export function timed(source: string): string {
  return source.replaceAll("redis.call('TIME')", "redis.call('HMGET', 'now', 's', 'us')");
}

export async function setScriptTime(client: Redis, us: number): Promise<void> {
  await client.hset('now', 's', String(Math.floor(us / 1e6)), 'us', String(us % 1e6));
}

/** From now on the scripts that a client runs by their digests have the time of `setScriptTime`. */
export function runTimed(client: Redis): void {
  const sources = new Map(Object.values(scripts).map(({ sha1, source }) => [sha1, timed(source)]));
  const call = client.call.bind(client) as (...words: readonly unknown[]) => Promise<unknown>;
  client.call = ((name: string, sha1: string, ...rest: readonly unknown[]) =>
    name === 'evalsha' ? call('eval', sources.get(sha1), ...rest) : call(name, sha1, ...rest)) as Redis['call'];
}
