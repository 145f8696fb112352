import type { Clock } from '../../core/base/clock.ts';
import type { HoldRequest } from '../../core/model/store.ts';
import { QuorumHolds } from './hold.ts';
import type { QuorumNode } from './node.ts';
import { QuorumReleases } from './releases.ts';
import { collect, type Verdict } from './tally.ts';

/** How far proposed fences are ahead of the nodes' clocks: replies have whole milliseconds, and calls vary. */
const aheadMs = 5;

/** The common part of the operations on a quorum. */
export class Quorum {
  readonly clock: Clock;
  readonly nodes: readonly QuorumNode[];
  /** How many nodes decide together: more than half. */
  readonly quorumSize: number;
  /** How many nodes may fail. */
  readonly maxFailures: number;
  readonly nodeTimeoutMs: number;
  readonly maxLeaseMs: number;
  readonly holds: QuorumHolds = new QuorumHolds();
  readonly releases: QuorumReleases;
  /** The last fence that was proposed for each request. */
  readonly #proposed = new WeakMap<HoldRequest, number>();

  constructor(clock: Clock, nodes: readonly QuorumNode[], nodeTimeoutMs: number, maxLeaseMs: number) {
    this.clock = clock;
    this.nodes = nodes;
    this.quorumSize = Math.floor(nodes.length / 2) + 1;
    this.maxFailures = nodes.length - this.quorumSize;
    this.nodeTimeoutMs = nodeTimeoutMs;
    this.maxLeaseMs = maxLeaseMs;
    this.releases = new QuorumReleases(clock);
  }

  /** Whether the connected nodes are too few for a quorum. */
  get hasLostQuorum(): boolean {
    return this.nodes.filter((node) => node.isLost).length > this.maxFailures;
  }

  /** Whether an acquire of a hold may still reach any node. */
  mayArriveLater(request: HoldRequest): boolean {
    return this.nodes.some((node) => node.mayArriveLater(node.requestOf(request)) === true);
  }

  /**
   * Returns a fence that is greater than the clocks of all nodes. If it is also greater than their last fences, the nodes
   * agree at once. It is greater than the fences proposed for the same request before: a copy of an earlier call may
   * arrive late, and must not raise the fence that a later call was granted. It does not depend on other requests: after a
   * clock that was once ahead by years, all fences would stay there, and every record would be kept as long.
   */
  proposal(request: HoldRequest): number | undefined {
    const offsets = this.nodes.flatMap(({ offsetMs }) => (offsetMs === undefined ? [] : [offsetMs]));
    if (offsets.length === 0) return undefined;
    const aheadOfAllUs = Math.ceil((this.clock.now().monoMs + Math.max(...offsets) + aheadMs) * 1000);
    const proposed = Math.max((this.#proposed.get(request) ?? 0) + 1, aheadOfAllUs);
    this.#proposed.set(request, proposed);
    return proposed;
  }

  /** Calls all nodes at once; see `collect`. */
  ask<T>(
    call: (node: QuorumNode, index: number) => Promise<T>,
    judge: (results: readonly (T | undefined)[]) => Verdict,
  ): Promise<readonly (T | undefined)[]> {
    // A tenth is short compared with a failing call, and enough for nodes that are as fast as the others.
    return collect(this.clock, this.nodes, this.nodes.map(call), this.nodeTimeoutMs / 10, judge);
  }
}
