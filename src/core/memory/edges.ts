import type { EdgeStore, HoldRequest, WaitEdge, WaitReply } from '../model/store.ts';

interface MemoryEdge {
  readonly edge: WaitEdge;
  readonly untilMs: number;
}

/** The edges of a `MemoryStore`: which owner waits for which lock. */
export class MemoryEdges implements EdgeStore {
  readonly #nowMs: () => number;
  readonly #wait: (request: HoldRequest) => WaitReply;
  /** By owner and by the hold id of the waiter. */
  readonly #edges = new Map<string, Map<string, MemoryEdge>>();

  constructor(nowMs: () => number, wait: (request: HoldRequest) => WaitReply) {
    this.#nowMs = nowMs;
    this.#wait = wait;
  }

  async set(owner: string, edge: WaitEdge, ttlMs: number): Promise<void> {
    const edges = this.#live(owner);
    edges.set(edge.request.holdId, { edge, untilMs: this.#nowMs() + ttlMs });
    this.#edges.set(owner, edges);
  }

  async clear(owner: string, edge: WaitEdge): Promise<void> {
    const edges = this.#edges.get(owner);
    edges?.delete(edge.request.holdId);
    if (edges?.size === 0) this.#edges.delete(owner);
  }

  async of(owner: string): Promise<readonly WaitEdge[]> {
    return [...this.#live(owner).values()].map(({ edge }) => edge);
  }

  async wait(request: HoldRequest): Promise<WaitReply> {
    return this.#wait(request);
  }

  /** The edges of an owner that have not expired. */
  #live(owner: string): Map<string, MemoryEdge> {
    const edges = this.#edges.get(owner) ?? new Map<string, MemoryEdge>();
    for (const [holdId, { untilMs }] of edges) if (untilMs <= this.#nowMs()) edges.delete(holdId);
    if (edges.size === 0) this.#edges.delete(owner);
    return edges;
  }
}
