import type { Clock } from '../../base/clock.ts';
import type { HoldRequest } from '../../model/store.ts';
import { QuorumHolds } from './hold.ts';
import type { QuorumNode } from './node.ts';
import { QuorumReleases } from './releases.ts';
import { collect, type Verdict } from './tally.ts';

/** Proposed fences are ahead of the nodes' clocks by this: their replies tell milliseconds, and calls vary. */
const aheadMs = 5;

/** What the operations on a quorum share. */
export class Quorum {
  readonly clock: Clock;
  readonly nodes: readonly QuorumNode[];
  /** How many nodes decide: more than half. */
  readonly size: number;
  /** How many may be missing. */
  readonly spare: number;
  readonly nodeTimeoutMs: number;
  readonly maxLeaseMs: number;
  readonly holds: QuorumHolds = new QuorumHolds();
  readonly releases: QuorumReleases;
  /** The last one of each request. */
  readonly #proposed = new WeakMap<HoldRequest, number>();

  constructor(clock: Clock, nodes: readonly QuorumNode[], nodeTimeoutMs: number, maxLeaseMs: number) {
    this.clock = clock;
    this.nodes = nodes;
    this.size = Math.floor(nodes.length / 2) + 1;
    this.spare = nodes.length - this.size;
    this.nodeTimeoutMs = nodeTimeoutMs;
    this.maxLeaseMs = maxLeaseMs;
    this.releases = new QuorumReleases(clock);
  }

  /** How many acquires of a hold may still arrive, at all nodes together. */
  unanswered(request: HoldRequest): number {
    return this.nodes.reduce((sum, node) => sum + (node.requestOf(request).unanswered ?? 0), 0);
  }

  /**
   * A fence that is beyond the clocks of all nodes: where it is beyond their last fences as well, they agree at once.
   * It is also beyond what was proposed for the same request before: a copy of an earlier call may come late, and must not
   * raise what a later one was granted. It is not beyond what was proposed for other requests: after a clock that was once
   * ahead by years, all fences would stay there, and every record would be kept as long.
   */
  proposal(request: HoldRequest): number | undefined {
    const offsets = this.nodes.flatMap(({ offsetMs }) => (offsetMs === undefined ? [] : [offsetMs]));
    if (offsets.length === 0) return undefined;
    const beyondUs = Math.ceil((this.clock.now().monoMs + Math.max(...offsets) + aheadMs) * 1000);
    const proposed = Math.max((this.#proposed.get(request) ?? 0) + 1, beyondUs);
    this.#proposed.set(request, proposed);
    return proposed;
  }

  /** Calls every node at once; see `collect`. */
  ask<T>(
    call: (node: QuorumNode, index: number) => Promise<T>,
    judge: (answers: readonly (T | undefined)[]) => Verdict,
  ): Promise<readonly (T | undefined)[]> {
    // A tenth: little beside a call that fails, and enough for nodes that are as fast as the others.
    return collect(this.clock, this.nodes, this.nodes.map(call), this.nodeTimeoutMs / 10, judge);
  }
}
