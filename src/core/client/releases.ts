import { elapsedMs, type Instant, pause } from '../base/clock.ts';
import { InFlight } from '../base/in-flight.ts';
import { inBackground } from '../base/safely.ts';
import type { LockStoreError } from '../model/errors/failures.ts';
import type { StoreAccess } from './access.ts';
import type { CallTarget, ReleaseCallbacks } from './calls.ts';

const firstRetryMs = 50;
const lastRetryMs = 1_000;
/** At most this many releases without a reply are remembered, the newest ones. */
const maxUnanswered = 10_000;

/** What a release ends: a hold or a place in the queue, and how long its lease can last. */
export interface ReleaseTarget extends CallTarget {
  readonly leaseMs: number;
  /** Whether no acquire of its hold id is in flight and nobody needs the status: then the store remembers nothing. */
  readonly isSettled?: boolean;
}

/** Releases holds and queue entries, and tries again until the store has replied or nothing can be left there. */
export class Releases {
  readonly #access: StoreAccess;
  /**
   * By hold id: releases without a reply. After an outage, the store may still have such an entry in its queue, and grant it.
   */
  readonly #unanswered = new Map<string, ReleaseTarget>();
  readonly #inFlight = new InFlight();
  /** Reports the end of one that is tried again. */
  readonly #ends = new Set<() => void>();

  constructor(access: StoreAccess) {
    this.#access = access;
  }

  /**
   * Releases a hold or cancels a waiter. After `storeTimeoutMs` without a reply it emits one `storeError` event, calls
   * `onError` once, and keeps trying in the background: `onStatus` and `onSettled` may follow.
   */
  release(target: ReleaseTarget, callbacks: ReleaseCallbacks): void {
    const sent = this.#access.clock.now();
    this.#inFlight.begin();
    this.#send(target, sent, {
      onStatus: (status, isRepeat) => {
        this.#inFlight.end();
        callbacks.onStatus(status, isRepeat);
      },
      onSettled: callbacks.onSettled,
      onError: (error) => inBackground(this.#retry(target, sent, error, callbacks)),
    });
  }

  /** Releases in the background. Emits no event if it fails. */
  releaseInBackground(target: ReleaseTarget): void {
    this.release(target, silent);
  }

  /** Releases a late grant, if the release of its hold id got no reply. Returns whether that is so. */
  releaseLate(holdId: string): boolean {
    const target = this.#unanswered.get(holdId);
    if (target === undefined) return false;
    this.#unanswered.delete(holdId);
    this.releaseInBackground(target);
    return true;
  }

  /** How long the store must remember a released hold id: as long as its lease may last, or calls about it may arrive. */
  tombstoneMs(leaseMs: number): number {
    return Math.max(leaseMs, 3 * this.#access.settings.storeTimeoutMs);
  }

  /** Resolves when no release is on its way. */
  idle(): Promise<void> {
    return this.#inFlight.idle();
  }

  /** Reports the end of those that are tried again. The process may end before they get a reply. */
  close(): void {
    for (const end of this.#ends) {
      this.#ends.delete(end);
      end();
    }
  }

  #send(target: ReleaseTarget, sent: Instant, callbacks: ReleaseCallbacks): void {
    const tombstoneMs = target.isSettled ? 0 : this.tombstoneMs(target.leaseMs);
    this.#access.client.release(target, { tombstoneMs }, sent, callbacks);
  }

  async #retry(
    target: ReleaseTarget,
    sent: Instant,
    firstError: LockStoreError,
    callbacks: ReleaseCallbacks,
  ): Promise<void> {
    const { client, clock, settings } = this.#access;
    const start = clock.now();
    const leftMs = (): number => target.leaseMs - elapsedMs(clock.now(), start);
    let error: LockStoreError | undefined = firstError;
    const fail = (): void => {
      if (error === undefined || hasReported) return;
      if (callbacks !== silent) client.report('release', target, error);
      callbacks.onError(error);
      hasReported = true;
    };
    let hasReported = false;
    const end = (): void => {
      fail();
      callbacks.onSettled();
    };
    this.#ends.add(end);
    // The caller waits for one deadline, however many tries fit in. Cleared after the last try.
    const timer = clock.after(settings.storeTimeoutMs - elapsedMs(start, sent), fail, true);
    for (
      let pauseMs = firstRetryMs;
      error !== undefined && leftMs() > 0;
      pauseMs = Math.min(2 * pauseMs, lastRetryMs)
    ) {
      if (client.outage.isConnected) await pause(clock, pauseMs * (0.5 + clock.jitter()));
      else await this.#connected(leftMs());
      error = await this.#sendAgain(target, callbacks);
    }
    timer.cancel();
    this.#inFlight.end();
    const isReported = !this.#ends.delete(end);
    if (error === undefined) return;
    this.#unanswered.set(target.request.holdId, target);
    if (this.#unanswered.size > maxUnanswered) this.#unanswered.delete(this.#unanswered.keys().next().value as string);
    if (!isReported) end();
  }

  /** Returns the error, if there is no reply. */
  #sendAgain(target: ReleaseTarget, { onStatus, onSettled }: ReleaseCallbacks): Promise<LockStoreError | undefined> {
    return new Promise((resolve) => {
      this.#send(target, this.#access.clock.now(), {
        onStatus: (status) => onStatus(status, true),
        onSettled: () => {
          onSettled();
          resolve(undefined);
        },
        onError: resolve,
      });
    });
  }

  /** Resolves when the store has a connection again, or after `ms`. */
  #connected(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        stop();
        resolve();
      };
      const timer = this.#access.clock.after(ms, done);
      const stop = this.#access.client.outage.onceConnected(done);
    });
  }
}

const silent: ReleaseCallbacks = { onStatus: ignore, onSettled: ignore, onError: ignore };

function ignore(): void {}
