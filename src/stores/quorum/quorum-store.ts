import { type Clock, elapsedMs, systemClock } from '../../core/base/clock.ts';
import type {
  AcquireReply,
  AcquireTerms,
  HoldRequest,
  InspectReply,
  LockStore,
  ReleaseReply,
  ReleaseTerms,
  RenewReply,
  RenewTerms,
  StoreCapabilities,
  StoreListener,
  Unsubscribe,
} from '../../core/model/store.ts';
import { checkOptions, milliseconds, objectWith, type Rule, type Rules } from '../../core/model/validate.ts';
import { acquireQuorum } from './acquire.ts';
import { forceReleaseQuorum, inspectQuorum, releaseQuorum, renewQuorum } from './calls.ts';
import type { QuorumHold } from './hold.ts';
import { QuorumNode } from './node.ts';
import { Quorum } from './quorum.ts';
import { subscribeQuorum } from './stream.ts';

/** Which stores decide together, and how long each may take. */
export interface QuorumStoreOptions {
  /** The nodes: three or more stores that share no server, disk or replication. An odd number is best. */
  readonly stores: readonly LockStore[];
  /** The deadline of a call to one node, in milliseconds; short beside every lease. Default 250. */
  readonly nodeTimeoutMs?: number | undefined;
  /**
   * The longest lease that any process asks for, in milliseconds. A longer one is refused, and a node that restarted does
   * not count for that long. Default 300 000.
   */
  readonly maxLeaseMs?: number | undefined;
}

/**
 * Keeps locks on a majority of independent stores (Redlock): they outlive the loss of the other stores. It has no queue: a
 * waiter tries again, and is woken by releases. A quorum agrees on a fence before the hold is granted. Throws
 * `LockConfigError` for bad options. Its calls reject with `LockStoreError`, whose cause says what each node did
 * (`QuorumFailure`). docs/stores/quorum.md says what is promised, and what is not.
 */
export class QuorumStore implements LockStore {
  readonly capabilities: StoreCapabilities;
  readonly #quorum: Quorum;

  constructor(options: QuorumStoreOptions, clock: Clock = systemClock) {
    const { stores, nodeTimeoutMs = 250, maxLeaseMs = 300_000 } = checkOptions(options, rules, 'QuorumStore', 'stores');
    const isNeeded = (): boolean => this.#quorum.hasLostQuorum;
    const nodes = stores.map((store) => new QuorumNode(store, clock, nodeTimeoutMs, isNeeded));
    this.#quorum = new Quorum(clock, nodes, nodeTimeoutMs, maxLeaseMs);
    this.capabilities = {
      queue: false,
      handOff: false,
      reachability: false,
      modes: false,
      shared: stores.every(({ capabilities }) => capabilities.shared),
      // A node that restarted is trusted again after that.
      maxLeaseMs,
    };
  }

  /** Returns a grant, or a refusal after a release on every node. Never `queued`: `terms.queue` has no effect. */
  async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const { holds, clock } = this.#quorum;
    const hold = holds.of(request);
    const now = clock.now();
    if (hold.pending !== undefined) {
      // The caller counts the lease from now. The replies of the nodes may be older.
      const { since, reply } = hold.pending;
      return later(await reply, elapsedMs(now, since));
    }
    const reply = this.#acquire(hold, terms).finally(() => {
      hold.pending = undefined;
      holds.dropIfSettled(hold);
    });
    hold.pending = { since: now, reply };
    return reply;
  }

  async renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return renewQuorum(this.#quorum, request, terms);
  }

  async release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    return releaseQuorum(this.#quorum, request, terms);
  }

  /** Returns the holds that a quorum has, or would have if the nodes that did not reply had them, too. */
  async inspect(id: string): Promise<InspectReply> {
    return inspectQuorum(this.#quorum, id);
  }

  /** True: no quorum has the hold any more. False: no quorum had it. */
  async forceRelease(id: string, fence: number): Promise<boolean> {
    return forceReleaseQuorum(this.#quorum, id, fence);
  }

  /** In force once the streams of a quorum are. The others follow when they can. */
  async subscribe(process: string, listener: StoreListener): Promise<Unsubscribe> {
    return subscribeQuorum(this.#quorum, process, listener);
  }

  async #acquire(hold: QuorumHold, terms: AcquireTerms): Promise<AcquireReply> {
    const reply = await acquireQuorum(this.#quorum, hold, terms);
    // Only the caller knows whether it asks again, which a node that remembers a release would cancel.
    return this.#quorum.mayArriveLater(hold.request) ? { ...reply, mayArriveLater: true } : reply;
  }
}

function later(reply: AcquireReply, ms: number): AcquireReply {
  return { ...reply, nowMs: reply.nowMs + ms };
}

const store = objectWith('a lock store', 'acquire', 'renew', 'release', 'inspect', 'forceRelease', 'subscribe');

const nodes: Rule = {
  expected: 'an array of three or more different stores whose `capabilities` have `minFence`',
  accepts: (value) =>
    Array.isArray(value) &&
    value.length >= 3 &&
    new Set(value).size === value.length &&
    value.every((each) => store.accepts(each) && (each as LockStore).capabilities?.minFence === true),
};

const rules: Rules<QuorumStoreOptions> = {
  stores: nodes,
  nodeTimeoutMs: milliseconds(),
  maxLeaseMs: milliseconds(),
};
