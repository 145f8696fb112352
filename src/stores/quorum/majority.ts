import { elapsedMs } from '../../core/base/clock.ts';
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
import { acquireQuorum } from './acquire.ts';
import { forceReleaseQuorum, inspectQuorum, releaseQuorum, renewQuorum } from './calls.ts';
import type { QuorumHold } from './hold.ts';
import type { Quorum } from './quorum.ts';
import { subscribeQuorum } from './stream.ts';

/** A majority of the nodes as one store without a queue. */
export class Majority implements LockStore {
  readonly capabilities: StoreCapabilities;
  readonly #quorum: Quorum;

  constructor(quorum: Quorum) {
    this.#quorum = quorum;
    this.capabilities = {
      queue: false,
      handOff: false,
      reachability: false,
      modes: false,
      shared: quorum.nodes.every(({ store }) => store.capabilities.shared),
      // A node that restarted is trusted again after that.
      maxLeaseMs: quorum.maxLeaseMs,
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
