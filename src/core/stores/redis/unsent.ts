import type { Redis } from 'ioredis';
import type { HoldRequest, ReleaseReply } from '../../model/store.ts';
import type { RedisOrCluster } from './cluster/cluster.ts';
import { isTimedOut } from './errors.ts';

/**
 * Releases that the client keeps in its own queue until it has a connection. A release is tried again until it is answered:
 * without a connection, a further try gets the answer of the call that waits already, else the client would keep them all.
 * Not with `autoResendUnfulfilledCommands: false`: what such a client has sent when its connection ends, it drops, and
 * never answers.
 */
export class RedisUnsent {
  readonly #client: RedisOrCluster;
  /** Whether the client answers every call, in the end. */
  readonly #answersAll: boolean;
  readonly #answers = new Map<string, Promise<ReleaseReply>>();
  /** Those of them that the client gave up by its `commandTimeout`: it keeps the calls, and sends them all the same. */
  readonly #unheard = new Set<string>();

  constructor(client: RedisOrCluster) {
    this.#client = client;
    // A `Cluster` has no such option: its calls are rejected where the connection to a node ends.
    this.#answersAll = (client as Redis).options?.autoResendUnfulfilledCommands !== false;
  }

  /** Calls `send`, or answers what the call that waits for a connection will. */
  run({ holdId }: HoldRequest, send: () => Promise<ReleaseReply>): Promise<ReleaseReply> {
    if (!this.#answersAll) return send();
    if (this.#client.status === 'ready') {
      if (this.#unheard.size > 0) this.#forgetUnheard();
      return send();
    }
    const known = this.#answers.get(holdId);
    if (known !== undefined) return known;
    const answer = send();
    this.#answers.set(holdId, answer);
    const forget = (): void => void this.#answers.delete(holdId);
    answer.then(forget, (error: unknown) => {
      if (isTimedOut(error)) this.#unheard.add(holdId);
      else forget();
    });
    return answer;
  }

  #forgetUnheard(): void {
    for (const holdId of this.#unheard) this.#answers.delete(holdId);
    this.#unheard.clear();
  }
}
