import type { Redis } from 'ioredis';
import { afterRound } from '../../../../core/base/clock.ts';

/** How many calls go into one write: the server works on the first calls while the next ones are made. */
const callsPerWrite = 16;

/**
 * Decides when the calls on the connection of an ioredis client are written to its socket. It corks the stream meanwhile, which
 * is Node's own means for this and costs half as much as a pipeline. Everything else that is sent on the connection in that time
 * waits as well: until the end of the event loop's round, before which no answer would be read anyway.
 */
export class WriteBatcher {
  readonly #client: Redis;
  /** The stream of the current round; undefined between rounds. */
  #stream: Redis['stream'] | undefined;
  #calls = 0;

  constructor(client: Redis) {
    this.#client = client;
  }

  /**
   * Call it before each call. The first call of a round is written at once: it is often the only one, or one that others wait
   * for. The others are written together, sixteen at a time, the rest at the end of the round. Before the first connection there
   * is no stream, and nothing is held back.
   */
  beforeCall(): void {
    this.#calls += 1;
    const stream = this.#stream;
    if (stream === undefined) this.#beginRound();
    else if (this.#calls === 2) stream.cork();
    else if (this.#calls % callsPerWrite === 0) {
      stream.uncork();
      stream.cork();
    }
  }

  #beginRound(): void {
    const { stream } = this.#client;
    if (stream === undefined) return;
    this.#stream = stream;
    this.#calls = 1;
    afterRound(() => {
      this.#stream = undefined;
      if (this.#calls > 1) stream.uncork();
    });
  }
}
