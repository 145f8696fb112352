import { type Clock, systemClock } from '../clock.ts';
import type { RedisClient } from './redis-scripts.ts';
import type { HoldRequest } from './store.ts';

/** Where the server should remember a release; see release.lua. */
type ReleaseFlag = 0 | 1 | 2;

interface Unanswered {
  count: number;
  /** When the last of them is of no interest any more: nobody sends it again. */
  overMs: number;
}

/**
 * What may still reach the server of calls that were made. A call that was answered on the connection on which it was
 * sent was sent once, and is over. One that was not may come, or come again: after a reconnect the client sends it anew,
 * and the old connection may hold it back. The server must remember a release for as long as that; and it can forget one
 * whose answer has come.
 */
export class RedisHistory {
  readonly #client: RedisClient;
  readonly #clock: Clock;
  /** How many acquires of a hold id may still come. */
  readonly #acquires = new WeakMap<HoldRequest, number>();
  /** Releases without an answer, by lock. */
  readonly #releases = new Map<string, Unanswered>();

  constructor(client: RedisClient, clock: Clock = systemClock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** An acquire is sent; the function that comes back says that it was answered. */
  asked(request: HoldRequest): () => void {
    const { stream } = this.#client;
    this.#acquires.set(request, (this.#acquires.get(request) ?? 0) + 1);
    return () => {
      if (this.#client.stream === stream) this.#acquires.set(request, (this.#acquires.get(request) ?? 1) - 1);
    };
  }

  /** What the server is told with a release that is about to be sent. */
  flag(request: HoldRequest): ReleaseFlag {
    if (this.#acquires.get(request) !== 0) return 2;
    return this.#releases.has(request.id) ? 0 : 1;
  }

  /** A release is sent; the function that comes back says that it was answered. */
  released(request: HoldRequest, rememberMs: number): () => void {
    const { id } = request;
    const nowMs = this.#clock.now().monoMs;
    this.#forget(nowMs);
    const known = this.#releases.get(id);
    const entry = known ?? { count: 0, overMs: 0 };
    // Kept in the order of their last releases.
    if (known !== undefined) this.#releases.delete(id);
    this.#releases.set(id, entry);
    entry.count += 1;
    entry.overMs = nowMs + rememberMs;
    return () => {
      entry.count -= 1;
      if (entry.count === 0 && this.#releases.get(id) === entry) this.#releases.delete(id);
    };
  }

  /** Those that are never answered. */
  #forget(nowMs: number): void {
    for (const [id, { overMs }] of this.#releases) {
      if (overMs > nowMs) return;
      this.#releases.delete(id);
    }
  }
}
