import type { Redis } from 'ioredis';
import { afterRound, afterTurn } from '../../../../base/clock.ts';

/** How many calls go into one write: the server works on the first calls while the next ones are made. */
const callsPerWrite = 16;

/**
 * Decides when the calls on the connection of an ioredis client are written to its socket. It corks the stream in the
 * meantime, which is Node's own means for this and costs half as much as a pipeline. Everything else that is sent on the
 * connection in that time waits as well.
 */
export class WriteBatcher {
  readonly #client: Redis;
  /** The stream of the current turn; undefined between turns. */
  #stream: Redis['stream'] | undefined;
  /** The stream that is still corked after its turn. */
  #corked: Redis['stream'] | undefined;
  /** Whether the turn so far is one release and then one acquire: that acquire may be written later. */
  #canWait = false;
  #calls = 0;

  constructor(client: Redis) {
    this.#client = client;
  }

  /**
   * To be called before each call, with the name of its script. The first call of a turn is written at once: it is often
   * the only one, or one that others wait for. The others are written together, sixteen at a time, the rest at the end of
   * the turn. Without a stream nothing is held back: that is before the first connection.
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
    this.#flush();
    this.#stream = stream;
    this.#canWait = first === 'release';
    this.#calls = 1;
    afterTurn(() => {
      this.#stream = undefined;
      if (this.#calls < 2) return;
      this.#corked = stream;
      if (this.#calls === 2 && this.#canWait) afterRound(() => afterRound(() => this.#flush()));
      else this.#flush();
    });
  }

  /**
   * Writes what is still held back: with the first call of the next turn, or after two rounds of the event loop at the
   * latest. Only a single acquire behind a release waits that long, for example when the former holder of a lock asks for
   * it again. Written at once, the server would read both together, and reply to the release late.
   */
  #flush(): void {
    this.#corked?.uncork();
    this.#corked = undefined;
  }
}
