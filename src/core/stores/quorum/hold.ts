import type { Instant } from '../../base/clock.ts';
import type { AcquireReply, HoldRequest } from '../../model/store.ts';
import type { QuorumNode } from './node.ts';

/** One try to get a hold. It goes one way: open, then won or lost; what is granted to a lost one is given back. */
export interface QuorumTry {
  state: 'open' | 'won' | 'lost';
  /** Where it was granted, and with which fence; late answers are added. */
  readonly granted: Map<QuorumNode, number>;
}

/** What this process knows of one hold on the nodes. */
export class QuorumHold {
  readonly request: HoldRequest;
  /** The longest lease that was asked for: what may be left where nothing is heard. */
  leaseMs = 0;
  /** Undefined while it is not held. */
  fence: number | undefined;
  /** The acquire on its way, and since when: a repeat gets its answer. */
  pending: { readonly since: Instant; readonly reply: Promise<AcquireReply> } | undefined;
  /** How often it was released: an acquire that was on its way is cancelled by it. */
  releaseCount = 0;
  /** The nodes that said that it was taken from it. */
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

  begin(): QuorumTry {
    this.#try = { state: 'open', granted: new Map() };
    return this.#try;
  }

  /** It is given back: nothing that is granted from here on counts. */
  end(): void {
    this.releaseCount += 1;
    this.fence = undefined;
    this.#try.state = 'lost';
  }

  /** Takes note of a call to a node until it has settled, however late. */
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
   * Whether a node may still execute an earlier call about it: a second hold that comes of that would keep its fence where
   * it is, so that node can't be asked.
   */
  isDoubtful(node: QuorumNode): boolean {
    return this.#unsettled.has(node);
  }

  /** Whether nothing needs to be known of it any more. */
  get isOver(): boolean {
    return this.fence === undefined && this.pending === undefined && this.#unsettled.size === 0;
  }
}

/** The holds of this process, by hold id, as long as anything needs to be known of them. */
export class QuorumHolds {
  readonly #holds = new Map<string, QuorumHold>();

  find(holdId: string): QuorumHold | undefined {
    return this.#holds.get(holdId);
  }

  of(request: HoldRequest): QuorumHold {
    let hold = this.#holds.get(request.holdId);
    if (hold === undefined) {
      hold = new QuorumHold(request, (settled) => this.tidy(settled));
      this.#holds.set(request.holdId, hold);
    }
    return hold;
  }

  tidy(hold: QuorumHold): void {
    const { holdId } = hold.request;
    if (hold.isOver && this.#holds.get(holdId) === hold) this.#holds.delete(holdId);
  }
}
