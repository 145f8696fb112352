import type { Redis } from 'ioredis';
import { afterRound } from '../../../../core/base/clock.ts';
import { guarded } from '../../../../core/base/safely.ts';

type Stream = Redis['stream'];

/** Node, Bun and Deno set it before they emit `exit`. */
type ExitingProcess = typeof process & { readonly _exiting?: boolean };

/** How many calls go into one write: the server works on the first calls while the next ones are made. */
const callsPerWrite = 16;

/** With so many calls unanswered, the server has work until the end of the round. */
const callsOfBusyServer = 8;

/**
 * Decides when the calls on the connection of an ioredis client are written to its socket. It corks the stream meanwhile, which
 * is Node's own means for this and costs half as much as a pipeline. Everything else that is sent on the connection in that time
 * waits as well: until the end of the event loop's round, before which no answer would be read anyway.
 */
export class WriteBatcher {
  readonly #client: Redis;
  /** The stream of the current round; undefined between rounds. */
  #stream: Stream | undefined;
  #calls = 0;
  #isCorked = false;

  constructor(client: Redis) {
    this.#client = client;
  }

  /**
   * Call it before each call. The first call of a round is written at once, unless the server is busy: it is often the only one,
   * or one that others wait for. The others are written together, sixteen at a time, the rest at the end of the round. Before the
   * first connection there is no stream, and nothing is held back. Nor is it when the process exits: no round ends any more.
   */
  beforeCall(): void {
    if ((process as ExitingProcess)._exiting) return;
    this.#calls += 1;
    const stream = this.#stream;
    if (stream === undefined) this.#beginRound();
    else if (!this.#isCorked) this.#cork(stream);
    else if (this.#calls % callsPerWrite === 0) {
      stream.uncork();
      stream.cork();
    }
  }

  #beginRound(): void {
    const { stream, commandQueue } = this.#client;
    if (stream === undefined) return;
    this.#stream = stream;
    this.#calls = 1;
    if (commandQueue.length >= callsOfBusyServer) this.#cork(stream);
    afterRound(() => {
      this.#stream = undefined;
      if (this.#isCorked) corkedStreams.uncork(stream);
      this.#isCorked = false;
    });
  }

  #cork(stream: Stream): void {
    this.#isCorked = true;
    corkedStreams.cork(stream);
  }
}

/**
 * The streams that are corked. If the process exits, they are uncorked before: a release that nobody awaits must be sent. Over TLS
 * Node sends one write in a round, so that the others are lost then, corked or not.
 */
class CorkedStreams {
  readonly #streams = new Set<Stream>();
  /** One listener for all clients: Node warns of many. */
  readonly #onExit = guarded(() => {
    for (const stream of this.#streams) stream.uncork();
  });

  cork(stream: Stream): void {
    if (this.#streams.size === 0) process.on('exit', this.#onExit);
    this.#streams.add(stream);
    stream.cork();
  }

  uncork(stream: Stream): void {
    this.#streams.delete(stream);
    if (this.#streams.size === 0) process.off('exit', this.#onExit);
    stream.uncork();
  }
}

const corkedStreams = new CorkedStreams();
