import { type Clock, systemClock } from '../clock.ts';
import type { RedisClient } from './redis-scripts.ts';
import type { HoldRequest } from './store.ts';

/** Where the server should remember a release; see release.lua. */
type ReleaseFlag = 0 | 1 | 2;

/** Calls without an answer, and when they are of no interest any more: what is older, nobody sends again. */
interface Open {
  count: number;
  readonly overMs: number;
}

const lingerMs = 600_000;
/** From so many on, those that will never be answered are looked for. */
const manyOpen = 1_000;

/**
 * What may still reach the server of calls that were made. A call that was answered on the connection on which it was
 * sent was sent once, and is over. One that was not may come, or come again: after a reconnect the client sends it anew,
 * and the old connection may hold it back. The server must remember a release for as long as that; and it can forget one
 * whose answer has come.
 */
export class RedisHistory {
  readonly #client: RedisClient;
  readonly #clock: Clock;
  /** Acquires that may still come, by hold id. */
  readonly #acquires = new Map<string, Open>();
  /** Releases that may still come, by lock. */
  readonly #releases = new Map<string, Open>();

  constructor(client: RedisClient, clock: Clock = systemClock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** An acquire is sent; the function that comes back says that it was answered. */
  asked({ holdId }: HoldRequest): () => void {
    const { stream } = this.#client;
    const answered = this.#open(this.#acquires, holdId);
    return () => {
      if (this.#client.stream === stream) answered();
    };
  }

  /** What the server is told with a release that is about to be sent. */
  flag({ holdId, id }: HoldRequest): ReleaseFlag {
    if (this.#acquires.has(holdId)) return 2;
    return this.#releases.has(id) ? 0 : 1;
  }

  /** A release is sent; the function that comes back says that it was answered. */
  released({ id, holdId }: HoldRequest): () => void {
    const answered = this.#open(this.#releases, id);
    return () => {
      answered();
      this.#acquires.delete(holdId);
    };
  }

  #open(calls: Map<string, Open>, name: string): () => void {
    if (calls.size > manyOpen) this.#forget(calls);
    const known = calls.get(name);
    const open = known ?? { count: 0, overMs: this.#clock.now().monoMs + lingerMs };
    if (known === undefined) calls.set(name, open);
    open.count += 1;
    return () => {
      open.count -= 1;
      if (open.count === 0 && calls.get(name) === open) calls.delete(name);
    };
  }

  /** They are in the order of their beginnings. */
  #forget(calls: Map<string, Open>): void {
    const nowMs = this.#clock.now().monoMs;
    for (const [name, { overMs }] of calls) {
      if (overMs > nowMs) return;
      calls.delete(name);
    }
  }
}
