import { type Clock, systemClock } from '../../core/base/clock.ts';
import type { HoldRequest } from '../../core/model/store.ts';
import type { RedisDriver } from './drivers/driver.ts';

/** Whether the server has to remember a release, and where: release.lua explains the numbers. */
type ReleaseFlag = 0 | 1 | 2;

/** A release that was not answered within this time is never sent again. */
const releaseRetryMs = 600_000;

/**
 * Knows which calls of this process may still reach the server. A call that was answered on the connection on which it was
 * sent has arrived once and is over. Any other call may arrive later, or twice: after a reconnect the client sends it
 * again, and the old connection may deliver it late. The server must remember a release for that long. A release that was
 * answered can be forgotten.
 */
export class CallHistory {
  readonly #driver: RedisDriver;
  readonly #clock: Clock;
  /** How many acquires of each hold may still reach the server. The caller passes one object with every call about a hold. */
  readonly #openAcquires = new WeakMap<HoldRequest, { count: number }>();
  /** The releases that have no answer yet: by lock, then by hold id, the time until which each counts. */
  readonly #openReleases = new Map<string, Map<string, number>>();

  constructor(driver: RedisDriver, clock: Clock = systemClock) {
    this.#driver = driver;
    this.#clock = clock;
  }

  /**
   * An acquire is about to be sent. Call the returned function when it was answered; a second call of it does nothing. It
   * returns whether a copy of this acquire, or of an earlier one of the same hold, may still reach the server.
   */
  acquireSent(request: HoldRequest): () => boolean {
    const epoch = this.#driver.connectionEpoch();
    let acquires = this.#openAcquires.get(request);
    if (acquires === undefined) {
      acquires = { count: 0 };
      this.#openAcquires.set(request, acquires);
    }
    acquires.count += 1;
    let isOpen = true;
    return () => {
      if (isOpen && this.#driver.isSameEpoch(epoch)) acquires.count -= 1;
      isOpen = false;
      return acquires.count > 0;
    };
  }

  /** What to tell the server with a release that is about to be sent. */
  releaseFlag(request: HoldRequest, tombstoneMs: number): ReleaseFlag {
    if (tombstoneMs === 0) return 1;
    // Nothing is known of a hold that this store was never asked for.
    if (this.#openAcquires.get(request)?.count !== 0) return 2;
    return this.#hasOtherOpenRelease(request) ? 0 : 1;
  }

  /** A release was sent. */
  releaseSent({ id, holdId }: HoldRequest): void {
    const nowMs = this.#clock.now().monoMs;
    const holds = this.#openReleases.get(id) ?? new Map<string, number>();
    // Each goes to the end, so that both maps stay in the order of time.
    holds.delete(holdId);
    holds.set(holdId, nowMs + releaseRetryMs);
    this.#openReleases.delete(id);
    this.#openReleases.set(id, holds);
    dropOver(holds, nowMs);
    for (const [lock, others] of this.#openReleases) {
      dropOver(others, nowMs);
      if (others.size > 0) break;
      this.#openReleases.delete(lock);
    }
  }

  /** A release was answered. With it, every earlier release of the same hold is settled. */
  releaseAnswered({ id, holdId }: HoldRequest): void {
    const holds = this.#openReleases.get(id);
    if (holds?.delete(holdId) && holds.size === 0) this.#openReleases.delete(id);
  }

  #hasOtherOpenRelease({ id, holdId }: HoldRequest): boolean {
    const holds = this.#openReleases.get(id);
    if (holds === undefined) return false;
    dropOver(holds, this.#clock.now().monoMs);
    return holds.size > (holds.has(holdId) ? 1 : 0);
  }
}

/** Removes the holds whose time is over: they come first. */
function dropOver(holds: Map<string, number>, nowMs: number): void {
  for (const [holdId, untilMs] of holds) {
    if (untilMs > nowMs) return;
    holds.delete(holdId);
  }
}
