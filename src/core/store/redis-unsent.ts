import type { Redis } from 'ioredis';
import type { RedisOrCluster } from './redis-cluster.ts';
import type { HoldRequest, ReleaseReply } from './store.ts';

/**
 * Releases that the client keeps until it has a connection. While it has none, one that is tried again is the same call:
 * else the client would keep all the tries, and many times what it has to. Not with `autoResendUnfulfilledCommands: false`:
 * what such a client has sent when its connection ends, it drops, and never answers.
 */
export class RedisUnsent {
  readonly #client: RedisOrCluster;
  readonly #isAnswered: boolean;
  readonly #answers = new Map<string, Promise<ReleaseReply>>();

  constructor(client: RedisOrCluster) {
    this.#client = client;
    // A `Cluster` has no such option: its calls are rejected where the connection to a node ends.
    this.#isAnswered = (client as Redis).options?.autoResendUnfulfilledCommands !== false;
  }

  run({ holdId }: HoldRequest, send: () => Promise<ReleaseReply>): Promise<ReleaseReply> {
    if (!this.#isAnswered || this.#client.status === 'ready') return send();
    const known = this.#answers.get(holdId);
    if (known !== undefined) return known;
    const answer = send();
    this.#answers.set(holdId, answer);
    const forget = (): void => void this.#answers.delete(holdId);
    answer.then(forget, forget);
    return answer;
  }
}
