import type { Cluster, Redis } from 'ioredis';
import { ClientLink } from '../client-link.ts';
import type { RedisCommand, RedisReplies, RedisSender } from '../driver.ts';

/** Sends on a client, or on a client's connection to a node. */
export class IoredisSender<C extends Redis | Cluster = Redis> implements RedisSender {
  protected readonly client: C;

  constructor(client: C) {
    this.client = client;
  }

  get keyPrefix(): string {
    return this.client.options.keyPrefix ?? '';
  }

  send(command: RedisCommand): Promise<unknown> {
    return this.client.call(...(command as [string]));
  }

  async sendAll(commands: readonly RedisCommand[]): Promise<RedisReplies> {
    const pipeline = this.client.pipeline();
    for (const command of commands) pipeline.call(...(command as [string]));
    const replies = (await pipeline.exec()) ?? [];
    return replies.map(([reason, value]) => (reason ? { status: 'rejected', reason } : { status: 'fulfilled', value }));
  }
}

/** The connection of a client. A lazy one connects on demand; it also emits the error that it rejects with. */
export function ioredisLink(client: Redis | Cluster): ClientLink {
  const state = (): 'up' | 'down' | 'ended' =>
    client.status === 'ready' ? 'up' : client.status === 'end' ? 'ended' : 'down';
  return new ClientLink(client, state, () => {
    if (client.status === 'wait') client.connect().catch(() => undefined);
  });
}

/** The code of an error reply: its first word. Other errors of ioredis have other names. */
export function ioredisCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.name === 'ReplyError') return /^[A-Z]+(?= |$)/.exec(error.message)?.[0];
  return /^Too many Cluster redirections\. Last error: ReplyError: ([A-Z]+)(?= |$)/.exec(error.message)?.[1];
}
