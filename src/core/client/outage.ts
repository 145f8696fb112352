import { type Clock, type Instant, wholeMs } from '../base/clock.ts';
import { type Link, LinkWatch } from '../base/link.ts';
import { LockStoreError } from '../model/errors/failures.ts';
import type { Events } from '../model/events.ts';

/**
 * Whether the store can be reached; emits one event when an outage begins and one when it ends. If the store has a `link`,
 * calls wait for it or fail at once. Without a link, every call is made: a call that finds no server begins an outage, and a
 * reply ends it.
 */
export class Outage {
  readonly #events: Events;
  readonly #clock: Clock;
  readonly #link: Link | undefined;
  readonly #watch: LinkWatch | undefined;
  #since: Instant | undefined;
  /** Counted from when calls began to wait: the first of them fail when the outage begins. */
  #failedCalls = 0;

  /** Before an outage, a call waits for `patienceMs` at most. */
  constructor(link: Link | undefined, events: Events, clock: Clock, patienceMs: number) {
    this.#events = events;
    this.#clock = clock;
    this.#link = link;
    const listener = { onDown: (error: Error) => this.#begin(error), onUp: () => this.#end() };
    this.#watch = link && new LinkWatch(link, clock, patienceMs, listener);
  }

  /** Whether a call can be made now. */
  get isConnected(): boolean {
    return this.#link?.isUp ?? true;
  }

  /** Whether there is an outage: the store could not be reached for a while. */
  get isDown(): boolean {
    return this.#since !== undefined;
  }

  /** Resolves when calls can be made. Rejects when there is an outage. */
  async connected(): Promise<void> {
    await this.#watch?.connected();
  }

  /** Calls the listener when calls can be made, however long that takes. Returns a function that unsubscribes. */
  onceConnected(listener: () => void): () => void {
    return this.#watch?.onceUp(listener) ?? (() => undefined);
  }

  /** The error for a call that was not made. */
  notSent(operation: string): LockStoreError {
    const message = `The lock store has no connection: ${operation} was not sent`;
    return new LockStoreError(message, { cause: this.#watch?.error, outcome: 'not-applied' });
  }

  /** Why a call got no reply, if the connection is gone. */
  get cause(): Error | undefined {
    return this.isConnected ? undefined : this.#watch?.error;
  }

  /** Call it after each reply. */
  onReply(): void {
    if (this.#since !== undefined && this.#watch === undefined) this.#end();
  }

  /** Call it after each failure. */
  onFailure(error: LockStoreError): void {
    if (this.#watch === undefined && this.#since === undefined) {
      const reason = connectionErrorOf(error.cause);
      if (reason !== undefined) this.#begin(reason);
    }
    if (this.#since !== undefined || !this.isConnected) this.#failedCalls += 1;
  }

  close(): void {
    this.#watch?.close();
  }

  #begin(error: Error): void {
    this.#since = this.#clock.now();
    this.#events.emit('storeDown', { error });
  }

  #end(): void {
    const [since, failedCalls] = [this.#since, this.#failedCalls];
    this.#since = undefined;
    this.#failedCalls = 0;
    if (since === undefined) return;
    this.#events.emit('storeUp', { downMs: wholeMs(this.#clock.now(), since), failedCalls });
  }
}

/** Codes of Node's system errors, and the SQLSTATE classes of a connection that failed and of a server that shuts down. */
const connectionCode = /^(E(CONN\w+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH)|08\w{3}|57P0[123])$/;

/** The error in a chain of causes that means a missing connection. */
function connectionErrorOf(cause: unknown): Error | undefined {
  for (let error = cause, depth = 0; error instanceof Error && depth < 8; error = error.cause, depth++) {
    if (connectionCode.test(String((error as NodeJS.ErrnoException).code))) return error;
  }
  return undefined;
}
