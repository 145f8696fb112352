import type { Redis } from 'ioredis';
import { afterRound, afterTurn } from '../../base/clock.ts';

/** How many calls travel in one write: the server works on the first ones while the next are made. */
const callsPerWrite = 8;

/**
 * Decides when the calls on a client's connection are written. It corks the connection meanwhile, which is Node's own means
 * for this, and costs half as much as a pipeline; whatever else is sent on the connection in that time waits as well.
 */
export class RedisWrites {
  readonly #client: Redis;
  /** The connection of the turn that lasts; undefined between turns. */
  #stream: Redis['stream'] | undefined;
  /** The connection that is still corked after its turn. */
  #corked: Redis['stream'] | undefined;
  /** Whether the turn is, as far as it has come, a release and then an acquire: that one may be written later. */
  #canWait = false;
  #calls = 0;

  constructor(client: Redis) {
    this.#client = client;
  }

  /**
   * To be called before each call, with the name of its script. The first one of a turn is written at once: often it is the
   * only one, or one that others wait for. The others are written together, eight at a time and the rest at the end of the
   * turn. Before there is a connection, there is nothing to hold back, and the many of a cluster are left alone: a `Cluster`
   * has no `stream`.
   */
  beforeCall(name: string): void {
    this.#calls += 1;
    const stream = this.#stream;
    if (stream === undefined) this.#beginTurn(name);
    else if (this.#calls === 2) {
      stream.cork();
      this.#canWait &&= name === 'acquire';
    } else if (this.#calls % callsPerWrite === 0) {
      stream.uncork();
      stream.cork();
    }
  }

  #beginTurn(first: string): void {
    const { stream } = this.#client;
    if (stream === undefined) return;
    this.#letGo();
    this.#stream = stream;
    this.#canWait = first === 'release';
    this.#calls = 1;
    afterTurn(() => {
      this.#stream = undefined;
      if (this.#calls < 2) return;
      this.#corked = stream;
      if (this.#calls === 2 && this.#canWait) afterRound(() => afterRound(() => this.#letGo()));
      else this.#letGo();
    });
  }

  /**
   * Writes what is still held back: at the latest with the next turn's first call, or when two rounds of the event loop are
   * over. So long waits an acquire that comes alone behind a release, as when a lock's former holder asks anew: written
   * at once, it would be read with the release by a server that first had to be woken, and that answers both together.
   */
  #letGo(): void {
    this.#corked?.uncork();
    this.#corked = undefined;
  }
}

const known = new WeakMap<Redis, RedisWrites>();

/** One for all the stores on a client: they share its connection. */
export function writesOf(client: Redis): RedisWrites {
  const writes = known.get(client) ?? new RedisWrites(client);
  known.set(client, writes);
  return writes;
}
