import { elapsedMs, type Instant, outsideRequests, type Timer } from '../base/clock.ts';
import type { StoreListener, Unsubscribe } from '../model/store.ts';
import type { StoreAccess } from './access.ts';

/** This process's stream of store messages: begun before the first waiter is queued, tried again if refused. */
export class Subscription {
  readonly #access: StoreAccess;
  readonly #listener: StoreListener;
  readonly #onInForce: () => void;
  #pending: Promise<Unsubscribe> | undefined;
  #askedAt: Instant | undefined;
  /** Runs until the stream may be asked for again; started by a refusal, cleared by `end`, unref'd. */
  #retryTimer: Timer | undefined;
  /** Whether messages arrive. Only this class sets it. */
  isInForce = false;
  /** Whether a fault was reported since messages arrived last. */
  #isFaulty = false;

  /** `onInForce` is called when the stream has begun: earlier messages were missed. */
  constructor(access: StoreAccess, listener: StoreListener, onInForce: () => void) {
    this.#access = access;
    this.#listener = listener;
    this.#onInForce = onInForce;
  }

  /** Waits until it is in force, at most `budgetMs` from when it was asked for: without it, waiters live by polling. */
  async ensure(budgetMs: number): Promise<void> {
    const pending = this.#pending ?? outsideRequests(() => this.#ask());
    const now = this.#access.clock.now();
    const leftMs = budgetMs - elapsedMs(now, this.#askedAt ?? now);
    if (leftMs <= 0) return;
    await this.#access.client.within('subscribe', leftMs, pending).catch(() => {
      // Late: it may still begin. Refused: `#ask` has reported it.
    });
  }

  /** Reports a fault of the stream once until messages arrive again; never during an outage. */
  onFault(error: Error): void {
    if (this.#isFaulty) return;
    this.#isFaulty = this.#access.client.reportBackground('subscribe', undefined, error);
  }

  onResubscribed(): void {
    this.#isFaulty = false;
  }

  /** Ends it; the store closes the connections that it opened for it. */
  async end(): Promise<void> {
    const pending = this.#pending;
    this.isInForce = false;
    await pending?.then(
      (unsubscribe) => unsubscribe(),
      () => this.#retryTimer?.cancel(), // Never in force: nothing to end.
    );
  }

  #ask(): Promise<Unsubscribe> {
    const { client, clock, process, settings } = this.#access;
    this.#askedAt = clock.now();
    const pending = client.subscribe(process, this.#listener);
    this.#pending = pending;
    pending.then(
      () => {
        this.isInForce = true;
        this.#isFaulty = false;
        this.#onInForce();
      },
      (error: Error) => {
        this.onFault(error);
        this.#retryTimer = clock.after(settings.pollMs, () => {
          this.#pending = undefined;
        });
      },
    );
    return pending;
  }
}
