import { elapsedMs, type Instant, pause } from '../base/clock.ts';
import { InFlight } from '../base/in-flight.ts';
import type { LockStoreError } from '../model/errors.ts';
import type { HoldRequest } from '../model/store.ts';
import type { StoreAccess } from './access.ts';
import type { ReleaseCallbacks } from './store-client.ts';

const firstRetryMs = 50;
const lastRetryMs = 1_000;
/** So many releases without a reply are remembered, the newest ones. */
const maxUnanswered = 10_000;

/** What a release ends: a hold or a place in the queue, and how long its lease can last. */
export interface ReleaseTarget {
  readonly key: string;
  readonly request: HoldRequest;
  readonly leaseMs: number;
}

/** Releases holds and queue entries, and tries again until the store has answered or nothing can be left there. */
export class Releases {
  readonly #access: StoreAccess;
  /**
   * By hold id: releases that the store never answered. A process that comes back to a queue after an outage finds its old
   * entries there, and they are granted with the others.
   */
  readonly #unanswered = new Map<string, ReleaseTarget>();
  readonly #inFlight = new InFlight();

  constructor(access: StoreAccess) {
    this.#access = access;
  }

  /**
   * Releases a hold or cancels a waiter. After `storeTimeoutMs` without a reply it calls `onError`, and tries on in the
   * background: `onStatus` and `onSettled` may follow then. Each failed try is told by a `storeError` event.
   */
  release(target: ReleaseTarget, callbacks: ReleaseCallbacks): void {
    const sent = this.#access.clock.now();
    this.#inFlight.begin();
    this.#send(target, sent, {
      onStatus: (status) => {
        this.#inFlight.end();
        callbacks.onStatus(status);
      },
      onSettled: callbacks.onSettled,
      onError: (error) => void this.#retry(target, sent, error, callbacks),
    });
  }

  /** As `release`, if nobody waits for it. */
  releaseInBackground(target: ReleaseTarget): void {
    this.release(target, silent);
  }

  /** Releases a late grant, if the release of its hold id was never answered. Returns whether it was. */
  releaseLate(holdId: string): boolean {
    const target = this.#unanswered.get(holdId);
    if (target === undefined) return false;
    this.#unanswered.delete(holdId);
    this.releaseInBackground(target);
    return true;
  }

  /** Resolves when no release is on its way. */
  idle(): Promise<void> {
    return this.#inFlight.idle();
  }

  #send({ key, request, leaseMs }: ReleaseTarget, sent: Instant, callbacks: ReleaseCallbacks): void {
    const { client, settings } = this.#access;
    const tombstoneMs = Math.max(leaseMs, 3 * settings.storeTimeoutMs);
    client.release(key, request, { tombstoneMs }, sent, callbacks);
  }

  async #retry(
    target: ReleaseTarget,
    sent: Instant,
    firstError: LockStoreError,
    { onStatus, onSettled, onError }: ReleaseCallbacks,
  ): Promise<void> {
    const { clock, settings } = this.#access;
    const start = clock.now();
    let error = firstError;
    // The caller waits for one deadline, however many tries fit in. Cleared when the tries are over.
    const timer = clock.after(settings.storeTimeoutMs - elapsedMs(start, sent), () => onError(error));
    let isAnswered = false;
    for (
      let pauseMs = firstRetryMs;
      !isAnswered && elapsedMs(clock.now(), start) < target.leaseMs;
      pauseMs = Math.min(2 * pauseMs, lastRetryMs)
    ) {
      await pause(clock, pauseMs * (0.5 + clock.jitter()));
      await new Promise<void>((next) => {
        this.#send(target, clock.now(), {
          onStatus: (status) => {
            isAnswered = true;
            timer.cancel();
            onStatus(status);
          },
          onSettled: () => {
            onSettled();
            next();
          },
          onError: (failure) => {
            error = failure;
            next();
          },
        });
      });
    }
    this.#inFlight.end();
    if (isAnswered) return;
    this.#unanswered.set(target.request.holdId, target);
    if (this.#unanswered.size > maxUnanswered) this.#unanswered.delete(this.#unanswered.keys().next().value as string);
    timer.cancel();
    onError(error);
    onSettled();
  }
}

const silent: ReleaseCallbacks = { onStatus: ignore, onSettled: ignore, onError: ignore };

function ignore(): void {}
