import type { Redis } from 'ioredis';
import { afterRound, afterTurn } from '../clock.ts';

/** How many calls travel in one write: the server works on the first ones while the next are made. */
const callsPerWrite = 8;

/**
 * When the calls of a client's connection are written: the connection is corked meanwhile, Node's own means for this;
 * cheaper than a pipeline by half. Whatever else is sent on it in that time waits as well.
 */
export class RedisWrites {
  readonly #client: Redis;
  /** Of the turn that lasts. */
  #stream: Redis['stream'] | undefined;
  /** Of a turn that is over, and still corked. */
  #corked: Redis['stream'] | undefined;
  /** Whether the turn's second call may be written later; said of its first one, and then of both. */
  #canWait = false;
  #calls = 0;

  constructor(client: Redis) {
    this.#client = client;
  }

  /**
   * Called before each call, with the name of its script. The first one of a turn is written at once: often it is the only
   * one, or one that others wait for. The others are written together at the end of the turn. Before there is a connection,
   * there is nothing to hold back, and the many of a cluster are left alone: of a `Cluster`, the `stream` is undefined.
   */
  next(name: string): void {
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
