import { type Clock, systemClock } from '../../base/clock.ts';
import type { HoldRequest } from '../../model/store.ts';
import type { RedisOrCluster } from './cluster/cluster.ts';
import { connectionsOf, type RedisConnections } from './connections.ts';
import { OpenReleases } from './open-releases.ts';

/** Where the server should remember a release. */
type ReleaseFlag = 0 | 1 | 2;

/** After so long nobody sends a release again. */
const lingerMs = 600_000;

/**
 * What may still reach the server of calls that were made. A call that was answered on the connection on which it was
 * sent was sent once, and is over. One that was not may come, or come again: after a reconnect the client sends it anew,
 * and the old connection may hold it back. The server must remember a release for as long as that; and it can forget one
 * whose answer has come.
 */
export class RedisHistory {
  readonly #connections: RedisConnections;
  readonly #clock: Clock;
  readonly #releases = new OpenReleases();

  constructor(client: RedisOrCluster, clock: Clock = systemClock) {
    this.#connections = connectionsOf(client);
    this.#clock = clock;
  }

  /** An acquire is about to be sent. Returns what is to be called when it was answered; calling that again does nothing. */
  asked(request: HoldRequest): () => void {
    const then = this.#connections.now();
    request.unanswered = (request.unanswered ?? 0) + 1;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      if (this.#connections.areStill(then)) request.unanswered = (request.unanswered ?? 1) - 1;
    };
  }

  /** What the server is to be told with a release that is about to be sent; the numbers are explained in release.lua. */
  flagOf(request: HoldRequest, tombstoneMs: number): ReleaseFlag {
    if (tombstoneMs === 0) return 1;
    // Of one that was never asked for here, nothing is known.
    if (request.unanswered !== 0) return 2;
    return this.#releases.isEmpty || !this.#releases.hasOther(request, this.#clock.now().monoMs) ? 1 : 0;
  }

  /** A release was sent. */
  releasing(request: HoldRequest): void {
    const nowMs = this.#clock.now().monoMs;
    this.#releases.open(request, nowMs, nowMs + lingerMs);
  }

  /** It was answered. */
  released(request: HoldRequest): void {
    this.#releases.close(request);
  }
}
