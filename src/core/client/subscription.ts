import { elapsedMs, type Instant, outsideRequests, type Timer } from '../base/clock.ts';
import type { StoreListener, Unsubscribe } from '../model/store.ts';
import type { Base } from '../runtime/runtime.ts';

/** This process's stream of store messages: asked for before the first waiter is queued, tried again when refused. */
export class Subscription {
  readonly #base: Base;
  readonly #listener: StoreListener;
  #pending: Promise<Unsubscribe> | undefined;
  #askedAt: Instant | undefined;
  /** Until it may be asked for again; started when it was refused, cleared by `end`, unref'd. */
  #retry: Timer | undefined;
  #isInForce = false;

  constructor(base: Base, listener: StoreListener) {
    this.#base = base;
    this.#listener = listener;
  }

  get isInForce(): boolean {
    return this.#isInForce;
  }

  /** Waits until it is in force, but not beyond `budgetMs` after it was asked for: without it, waiters live by polling. */
  async ensure(budgetMs: number): Promise<void> {
    const pending = this.#pending ?? outsideRequests(() => this.#ask());
    const now = this.#base.clock.now();
    const leftMs = budgetMs - elapsedMs(now, this.#askedAt ?? now);
    if (leftMs <= 0) return;
    await this.#base.calls
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
    this.#askedAt = this.#base.clock.now();
    const pending = (async () => this.#base.store.subscribe(this.#base.process, this.#listener))();
    this.#pending = pending;
    pending.then(
      () => {
        this.#isInForce = true;
      },
      (error: Error) => {
        this.#base.events.emit('storeError', { operation: 'subscribe', error });
        this.#retry = this.#base.clock.after(this.#base.settings.pollMs, () => {
          this.#pending = undefined;
        });
      },
    );
    return pending;
  }
}
