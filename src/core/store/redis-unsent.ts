import type { RedisOrCluster } from './redis-cluster.ts';
import type { HoldRequest, ReleaseReply } from './store.ts';

/**
 * Releases that the client keeps until it has a connection. While it has none, one that is tried again is the same call:
 * else the client would keep all the tries, and many times what it has to.
 */
export class RedisUnsent {
  readonly #client: RedisOrCluster;
  readonly #answers = new Map<string, Promise<ReleaseReply>>();

  constructor(client: RedisOrCluster) {
    this.#client = client;
  }

  run({ holdId }: HoldRequest, send: () => Promise<ReleaseReply>): Promise<ReleaseReply> {
    if (this.#client.status === 'ready') return send();
    const known = this.#answers.get(holdId);
    if (known !== undefined) return known;
    const answer = send();
    this.#answers.set(holdId, answer);
    const forget = (): void => void this.#answers.delete(holdId);
    answer.then(forget, forget);
    return answer;
  }
}
