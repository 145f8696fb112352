import { type Clock, systemClock } from '../clock.ts';
import { type Listed, SwapList } from '../swap-list.ts';
import type { RedisOrCluster } from './redis-cluster.ts';
import { connectionsOf, type RedisConnections } from './redis-connections.ts';
import type { HoldRequest } from './store.ts';

/** Where the server should remember a release; see release.lua. */
type ReleaseFlag = 0 | 1 | 2;

/** A release without an answer. */
class OpenRelease implements Listed {
  place = -1;
  readonly id: string;
  readonly holdId: string;
  /** From then on nobody sends it again. */
  readonly overMs: number;

  constructor({ id, holdId }: HoldRequest, overMs: number) {
    this.id = id;
    this.holdId = holdId;
    this.overMs = overMs;
  }
}

const lingerMs = 600_000;
/** With more than these, none is looked at: the server is to remember every release. */
const mostOpen = 1_024;

/**
 * What may still reach the server of calls that were made. A call that was answered on the connection on which it was
 * sent was sent once, and is over. One that was not may come, or come again: after a reconnect the client sends it anew,
 * and the old connection may hold it back. The server must remember a release for as long as that; and it can forget one
 * whose answer has come.
 */
export class RedisHistory {
  readonly #connections: RedisConnections;
  readonly #clock: Clock;
  readonly #releases = new SwapList<OpenRelease>();
  #forgetAtMs = 0;

  constructor(client: RedisOrCluster, clock: Clock = systemClock) {
    this.#connections = connectionsOf(client);
    this.#clock = clock;
  }

  /** An acquire is sent; the function that comes back says that it was answered. */
  asked(request: HoldRequest): () => void {
    const then = this.#connections.now();
    request.unanswered = (request.unanswered ?? 0) + 1;
    return () => {
      if (this.#connections.areStill(then)) request.unanswered = (request.unanswered ?? 1) - 1;
    };
  }

  /** A release is about to be sent: what the server is told with it, and the function that says that it was answered. */
  released(request: HoldRequest, tombstoneMs: number): [ReleaseFlag, () => void] {
    const nowMs = this.#clock.now().monoMs;
    const flag = tombstoneMs === 0 ? 1 : this.#flag(request, nowMs);
    const open = new OpenRelease(request, nowMs + lingerMs);
    this.#releases.add(open);
    return [
      flag,
      () => {
        this.#releases.delete(open);
        // An earlier try that was rejected is settled with it.
        this.#releases.some((tried) => tried.holdId === open.holdId && this.#releases.delete(tried));
      },
    ];
  }

  #flag(request: HoldRequest, nowMs: number): ReleaseFlag {
    // Of one that was never asked for here, nothing is known.
    if (request.unanswered !== 0) return 2;
    return this.#hasOpen(request, nowMs) ? 0 : 1;
  }

  #hasOpen({ id, holdId }: HoldRequest, nowMs: number): boolean {
    if (this.#releases.size > mostOpen) this.#forget(nowMs);
    const isOthers = (open: OpenRelease): boolean => open.id === id && open.holdId !== holdId && open.overMs > nowMs;
    return this.#releases.size > mostOpen || this.#releases.some(isOthers);
  }

  /** Once a second at most. */
  #forget(nowMs: number): void {
    if (nowMs < this.#forgetAtMs) return;
    this.#forgetAtMs = nowMs + 1_000;
    for (const open of this.#releases) if (open.overMs <= nowMs) this.#releases.delete(open);
  }
}
