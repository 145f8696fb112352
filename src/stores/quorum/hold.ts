import type { Instant } from '../../core/base/clock.ts';
import type { AcquireReply, HoldRequest } from '../../core/model/store.ts';
import type { QuorumNode } from './node.ts';

/** One try to get a hold. It is open, then won or lost. What a node grants to a lost try is released. */
export interface QuorumTry {
  state: 'open' | 'won' | 'lost';
  /** The nodes that granted it, with their fences. Late replies are added. */
  readonly granted: Map<QuorumNode, number>;
}

/** One hold on the nodes, as far as this process knows. */
export class QuorumHold {
  readonly request: HoldRequest;
  /** The longest lease that was asked for: a node that does not reply may keep the hold that long. */
  leaseMs = 0;
  /** Undefined while the hold is not held. */
  fence: number | undefined;
  /** The pending acquire, and its start: a repeated acquire gets the same reply. */
  pending: { readonly since: Instant; readonly reply: Promise<AcquireReply> } | undefined;
  /** How often the hold was released. A release cancels an acquire that is pending. */
  releaseCount = 0;
  /** The nodes that reported that the hold was taken from its owner. */
  readonly lostOn: Set<QuorumNode> = new Set();
  #try: QuorumTry = { state: 'lost', granted: new Map() };
  readonly #unsettled = new Map<QuorumNode, number>();
  readonly #onSettled: (hold: QuorumHold) => void;

  constructor(request: HoldRequest, onSettled: (hold: QuorumHold) => void) {
    this.request = request;
    this.#onSettled = onSettled;
  }

  get latestTry(): QuorumTry {
    return this.#try;
  }

  /** Begins a new try. */
  begin(): QuorumTry {
    this.#try = { state: 'open', granted: new Map() };
    return this.#try;
  }

  /** Marks the hold as released: later grants do not count. */
  end(): void {
    this.releaseCount += 1;
    this.fence = undefined;
    this.#try.state = 'lost';
  }

  /** Remembers a call to a node until it has settled, however late. */
  track<T>(node: QuorumNode, call: Promise<T>): Promise<T> {
    this.#unsettled.set(node, (this.#unsettled.get(node) ?? 0) + 1);
    const settled = (): void => {
      const left = (this.#unsettled.get(node) ?? 1) - 1;
      if (left > 0) this.#unsettled.set(node, left);
      else this.#unsettled.delete(node);
      this.#onSettled(this);
    };
    call.then(settled, settled);
    return call;
  }

  /**
   * Whether a node may still execute an earlier call about this hold. Such a node cannot be asked: the earlier call could
   * make a second hold there, which would keep its own fence.
   */
  hasUnsettledCalls(node: QuorumNode): boolean {
    return this.#unsettled.has(node);
  }

  /** Whether the hold can be forgotten. */
  get isSettled(): boolean {
    return this.fence === undefined && this.pending === undefined && this.#unsettled.size === 0;
  }
}

/** The holds of this process, by hold id, until they can be forgotten. */
export class QuorumHolds {
  readonly #holds = new Map<string, QuorumHold>();

  find(holdId: string): QuorumHold | undefined {
    return this.#holds.get(holdId);
  }

  /** The hold of a request; a new one, if it is not known. */
  of(request: HoldRequest): QuorumHold {
    let hold = this.#holds.get(request.holdId);
    if (hold === undefined) {
      hold = new QuorumHold(request, (settled) => this.dropIfSettled(settled));
      this.#holds.set(request.holdId, hold);
    }
    return hold;
  }

  /** Forgets a hold if possible. */
  dropIfSettled(hold: QuorumHold): void {
    const { holdId } = hold.request;
    if (hold.isSettled && this.#holds.get(holdId) === hold) this.#holds.delete(holdId);
  }
}
