import { type Clock, outsideRequests, type Timer } from './clock.ts';
import { Deferred } from './deferred.ts';

/** The way to a server, as the client knows it that keeps it open. */
export interface Link {
  /** Whether a call that is made now is written to a connection. */
  readonly isUp: boolean;
  /** Whether the client was closed: it does not connect again by itself. */
  readonly isEnded: boolean;
  /** The last error of the client since somebody has waited for the link. */
  readonly error: Error | undefined;
  /** Calls the listener once it is up, and makes a client connect that does so on demand. Returns what takes that back. */
  onceUp(listener: () => void): () => void;
}

/** Hears of outages. `onUp` is called after each wait for the link, also one that was over in time. */
export interface OutageListener {
  onDown(error: Error): void;
  onUp(): void;
}

/**
 * Says whether a link is up or down. A link that is lost for a moment, or not open yet, is waited for. If that takes longer
 * than `patienceMs`, there is an outage: nobody waits any more until the link is up again.
 */
export class LinkWatch {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #patienceMs: number;
  readonly #listener: OutageListener | undefined;
  /** Why it is down; undefined while there is no outage. */
  #outage: Error | undefined;
  /** What the first call waits for that finds the link not up. Undefined until then, and when the link is up again. */
  #opened: Deferred<void> | undefined;
  /** Called when it is up, after an outage too. */
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

  /** Why the link is not up, as far as that is known. */
  get error(): Error {
    return this.#outage ?? this.#link.error ?? new Error('The client has no connection');
  }

  /** Resolves when the link is up. Rejects with the client's error when there is an outage. */
  opened(): Promise<void> {
    return this.#link.isUp ? Promise.resolve() : this.#begin().promise;
  }

  /** Calls the listener when the link is up, however long that takes. Returns what takes that back. */
  onceUp(listener: () => void): () => void {
    this.#onUp.add(listener);
    this.#begin();
    return () => this.#onUp.delete(listener);
  }

  /** Stops watching. What waits fails. */
  close(): void {
    this.#end();
    this.#opened?.reject(this.error);
    this.#opened = undefined;
    this.#onUp.clear();
  }

  #begin(): Deferred<void> {
    if (this.#opened !== undefined) return this.#opened;
    const opened = new Deferred<void>(true);
    this.#opened = opened;
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
    this.#opened?.resolve();
    this.#opened = undefined;
    const listeners = [...this.#onUp];
    this.#onUp.clear();
    for (const listener of listeners) listener();
  }

  #down(): void {
    this.#outage = this.error;
    this.#listener?.onDown(this.#outage);
    this.#opened?.reject(this.#outage);
  }

  #end(): void {
    this.#timer?.cancel();
    this.#unlisten?.();
    this.#unlisten = undefined;
  }
}
