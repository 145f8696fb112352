import { asMicrotask, elapsedMs, type Instant, pause } from '../base/clock.ts';
import { InFlight } from '../base/in-flight.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { LockStoreError } from '../model/errors.ts';
import type { HoldRequest, ReleaseReply } from '../model/store.ts';
import type { Base } from '../runtime/runtime.ts';
import { reported } from './calls.ts';

const firstRetryMs = 50;
const lastRetryMs = 1_000;
/** Of so many releases that were never answered the newest are remembered. */
const mostUnheard = 10_000;

/** Called with every answer: grants to this process ride in it. */
type OnReply = (id: string, sent: Instant, reply: ReleaseReply) => void;

type Status = ReleaseReply['status'];
/**
 * Called with the store's status at once. The function that comes back tells whoever awaits the release, and is called
 * after those to whom the lock was handed on have heard of it.
 */
type OnStatus = (status: Status) => () => void;

/** What may be left in the store: a hold or a place in the queue, and how long its lease can last. */
export interface ReleaseTarget {
  readonly key: string;
  readonly request: HoldRequest;
  readonly leaseMs: number;
}

/** Gives holds and queue entries back, and goes on trying until the store has answered or nothing can be left there. */
export class Releases {
  readonly #base: Base;
  readonly #onReply: OnReply;
  /**
   * By hold id: what the store never answered to. Who comes back to a queue after an outage finds its old entries there,
   * and they are granted with the others.
   */
  readonly #unheard = new Map<string, ReleaseTarget>();
  readonly #running = new InFlight();

  constructor(base: Base, onReply: OnReply) {
    this.#base = base;
    this.#onReply = onReply;
  }

  /**
   * Releases a hold or cancels a waiter. Calls back with the store's status; with a `LockStoreError` after `storeTimeoutMs`
   * without one, and tries on in the background. Each failed try is reported as a `storeError` event.
   */
  give(left: ReleaseTarget, onStatus: OnStatus, onError: (error: LockStoreError) => void): void {
    this.#running.begin();
    this.#try(
      left,
      (status) => {
        this.#running.end();
        return onStatus(status);
      },
      (error, sent) => void this.#retry(left, sent, error, onStatus, onError),
    );
  }

  /** As `give`, where nobody waits for the answer. */
  giveInBackground(left: ReleaseTarget): void {
    this.give(left, () => ignore, ignore);
  }

  /** Gives a late grant back; answers whether it is one, to a hold id whose release was never answered. */
  giveLate(holdId: string): boolean {
    const unheard = this.#unheard.get(holdId);
    if (unheard === undefined) return false;
    this.#unheard.delete(holdId);
    this.giveInBackground(unheard);
    return true;
  }

  /** Resolves when no release is on its way. */
  idle(): Promise<void> {
    return this.#running.idle();
  }

  #try(
    { key, request, leaseMs }: ReleaseTarget,
    onStatus: OnStatus,
    onError: (error: LockStoreError, sent: Instant) => void,
  ): void {
    const { store, calls, clock, events, settings } = this.#base;
    const sent = clock.now();
    const tombstoneMs = Math.max(leaseMs, 3 * settings.storeTimeoutMs);
    let hasFailed = false;
    const onReply = (reply: ReleaseReply): void => {
      const settle = hasFailed ? ignore : onStatus(reply.status);
      // Whom the lock was handed to goes on first, since others wait for it: it takes a turn from its grant to its code.
      this.#onReply(request.id, sent, reply);
      if (reply.claims.length > 0) asMicrotask(settle);
      else settle();
    };
    const call = (): MaybePromise<ReleaseReply> => store.release(request, { tombstoneMs });
    calls.start('release', sent, settings.storeTimeoutMs, call, onReply, (failure) => {
      hasFailed = true;
      onError(reported(events, 'release', key, failure), sent);
    });
  }

  async #retry(
    left: ReleaseTarget,
    sent: Instant,
    firstError: LockStoreError,
    resolve: OnStatus,
    reject: (error: LockStoreError) => void,
  ): Promise<void> {
    const { clock, settings } = this.#base;
    const start = clock.now();
    let error = firstError;
    // Who awaits it waits for one deadline, however many tries fit in; cleared when they are over.
    const timer = clock.after(settings.storeTimeoutMs - elapsedMs(start, sent), () => reject(error));
    for (
      let pauseMs = firstRetryMs;
      elapsedMs(clock.now(), start) < left.leaseMs;
      pauseMs = Math.min(2 * pauseMs, lastRetryMs)
    ) {
      await pause(clock, pauseMs * (0.5 + clock.jitter()));
      try {
        const status = await new Promise<Status>((answer, fail) =>
          this.#try(left, (answered) => () => answer(answered), fail),
        );
        timer.cancel();
        resolve(status)();
        this.#running.end();
        return;
      } catch (next) {
        error = next as LockStoreError;
      }
    }
    this.#unheard.set(left.request.holdId, left);
    if (this.#unheard.size > mostUnheard) this.#unheard.delete(this.#unheard.keys().next().value as string);
    timer.cancel();
    reject(error);
    this.#running.end();
  }
}

function ignore(): void {}
