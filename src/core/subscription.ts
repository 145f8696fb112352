import { type Clock, elapsedMs, type Instant, outsideRequests, type Timer } from './clock.ts';
import type { Events } from './events.ts';
import type { LockStore, StoreListener, Unsubscribe } from './store/store.ts';
import type { StoreCalls } from './store-calls.ts';

/** This process's stream of store messages: asked for before the first waiter is queued, tried again when refused. */
export class Subscription {
  readonly #store: LockStore;
  readonly #calls: StoreCalls;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #process: string;
  readonly #listener: StoreListener;
  readonly #retryMs: number;
  #pending: Promise<Unsubscribe> | undefined;
  #askedAt: Instant | undefined;
  /** Until it may be asked for again; started when it was refused, cleared by `end`, unref'd. */
  #retry: Timer | undefined;
  #isInForce = false;

  constructor(
    store: LockStore,
    calls: StoreCalls,
    clock: Clock,
    events: Events,
    process: string,
    retryMs: number,
    listener: StoreListener,
  ) {
    this.#store = store;
    this.#calls = calls;
    this.#clock = clock;
    this.#events = events;
    this.#process = process;
    this.#retryMs = retryMs;
    this.#listener = listener;
  }

  get isInForce(): boolean {
    return this.#isInForce;
  }

  /** Waits until it is in force, but not beyond `budgetMs` after it was asked for: without it, waiters live by polling. */
  async ensure(budgetMs: number): Promise<void> {
    const pending = this.#pending ?? outsideRequests(() => this.#ask());
    const now = this.#clock.now();
    const leftMs = budgetMs - elapsedMs(now, this.#askedAt ?? now);
    if (leftMs <= 0) return;
    await this.#calls
      .run('subscribe', now, leftMs, () => pending)
      .catch(() => {
        // Late: it may still come. Refused: `#ask` has told.
      });
  }

  /** Ends it; the store closes what it opened for it. */
  async end(): Promise<void> {
    const pending = this.#pending;
    this.#isInForce = false;
    await pending?.then(
      (unsubscribe) => unsubscribe(),
      () => this.#retry?.cancel(), // Never in force: nothing to end.
    );
  }

  #ask(): Promise<Unsubscribe> {
    this.#askedAt = this.#clock.now();
    const pending = (async () => this.#store.subscribe(this.#process, this.#listener))();
    this.#pending = pending;
    pending.then(
      () => {
        this.#isInForce = true;
      },
      (error: Error) => {
        this.#events.emit('storeError', { operation: 'subscribe', error });
        this.#retry = this.#clock.after(this.#retryMs, () => {
          this.#pending = undefined;
        });
      },
    );
    return pending;
  }
}
