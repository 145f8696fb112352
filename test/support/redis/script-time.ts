import { Command, type Redis } from 'ioredis';
import * as scripts from '../../../src/stores/redis/scripts.generated.ts';

/** A script whose time is that of `setScriptTime`, in place of the server's. */
export function timed(source: string): string {
  return source.replaceAll("redis.call('TIME')", "redis.call('HMGET', 'now', 's', 'us')");
}

export async function setScriptTime(client: Redis, us: number): Promise<void> {
  await client.hset('now', 's', String(Math.floor(us / 1e6)), 'us', String(us % 1e6));
}

/** From now on the scripts that a client runs by their digests have the time of `setScriptTime`. */
export function runTimed(client: Redis): void {
  const all = Object.values(scripts).filter((exported) => 'source' in exported);
  const sources = new Map(all.map(({ sha1, source }) => [sha1, timed(source)]));
  const send = client.sendCommand.bind(client);
  client.sendCommand = (command, stream) => {
    if (command.name !== 'evalsha') return send(command, stream);
    const [sha1, ...rest] = command.args;
    return send(new Command('eval', [sources.get(String(sha1))!, ...rest], { replyEncoding: 'utf8' }), stream);
  };
}
