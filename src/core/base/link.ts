import { type Clock, outsideRequests, type Timer } from './clock.ts';
import { Deferred } from './deferred.ts';

/** A client library's connection to its server. */
export interface Link {
  /** Whether a call that is made now is written to a connection. */
  readonly isUp: boolean;
  /** Whether the client was closed: it does not connect again by itself. */
  readonly isEnded: boolean;
  /** The client's last error since somebody began to wait for the link. */
  readonly error: Error | undefined;
  /** Calls the listener once it is up; a client that connects on demand connects now. Returns a function that unsubscribes. */
  onceUp(listener: () => void): () => void;
}

/** Callbacks of `LinkWatch`. `onUp` is called after each wait for the link, even if there was no outage. */
export interface OutageListener {
  onDown(error: Error): void;
  onUp(): void;
}

/**
 * Watches whether a link is up or down. Callers wait for a link that is lost for a moment, or not open yet. If that takes
 * longer than `patienceMs`, there is an outage: callers fail at once until the link is up again.
 */
export class LinkWatch {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #patienceMs: number;
  readonly #listener: OutageListener | undefined;
  /** Why it is down; undefined while there is no outage. */
  #outage: Error | undefined;
  /** Settled when the link is up or an outage begins. Undefined while the link is up and nobody waits for it. */
  #connected: Deferred<void> | undefined;
  /** Called when it is up, also after an outage. */
  readonly #onUp = new Set<() => void>();
  /** Runs from the first wait until the outage; unref'd. */
  #timer: Timer | undefined;
  #unlisten: (() => void) | undefined;

  constructor(link: Link, clock: Clock, patienceMs: number, listener?: OutageListener) {
    this.#link = link;
    this.#clock = clock;
    this.#patienceMs = patienceMs;
    this.#listener = listener;
  }

  /** Why the link is not up, if known. */
  get error(): Error {
    return this.#outage ?? this.#link.error ?? new Error('The client has no connection');
  }

  /** Resolves when the link is up. Rejects with the client's error when there is an outage. */
  connected(): Promise<void> {
    return this.#link.isUp ? Promise.resolve() : this.#begin().promise;
  }

  /** Calls the listener when the link is up, however long that takes. Returns a function that unsubscribes. */
  onceUp(listener: () => void): () => void {
    this.#onUp.add(listener);
    this.#begin();
    return () => this.#onUp.delete(listener);
  }

  /** Stops watching. Waiting callers fail. */
  close(): void {
    this.#end();
    this.#connected?.reject(this.error);
    this.#connected = undefined;
    this.#onUp.clear();
  }

  #begin(): Deferred<void> {
    if (this.#connected !== undefined) return this.#connected;
    const opened = new Deferred<void>(true);
    this.#connected = opened;
    outsideRequests(() => {
      this.#unlisten = this.#link.onceUp(() => this.#up());
      if (this.#link.isEnded) this.#down();
      else this.#timer = this.#clock.after(this.#patienceMs, () => this.#down());
    });
    return opened;
  }

  #up(): void {
    this.#end();
    this.#outage = undefined;
    this.#listener?.onUp();
    this.#connected?.resolve();
    this.#connected = undefined;
    const listeners = [...this.#onUp];
    this.#onUp.clear();
    for (const listener of listeners) listener();
  }

  #down(): void {
    this.#outage = this.error;
    this.#listener?.onDown(this.#outage);
    this.#connected?.reject(this.#outage);
  }

  #end(): void {
    this.#timer?.cancel();
    this.#unlisten?.();
    this.#unlisten = undefined;
  }
}
