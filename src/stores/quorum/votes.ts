import type { AcquireReply, AcquireTerms, HoldRequest, WaiterGrant } from '../../core/model/store.ts';
import type { QuorumHold } from './hold.ts';
import type { CallResult, QuorumNode } from './node.ts';
import type { Quorum } from './quorum.ts';

/** The reply of one node to an acquire. `restarted`: it granted, but may have forgotten the lease of another owner. */
export type Vote =
  | {
      readonly kind: 'granted';
      readonly grant: WaiterGrant;
      readonly nowMs: number;
    }
  | { readonly kind: 'refused'; readonly leaseRemainingMs: number; readonly nowMs: number }
  | { readonly kind: 'cancelled'; readonly nowMs: number }
  | { readonly kind: 'restarted' }
  | { readonly kind: 'timeout'; readonly wasAsked: boolean }
  | { readonly kind: 'unreachable' | 'failed'; readonly error: unknown };

/** In the order of the nodes; undefined for a node that has not replied in time. */
export type Votes = readonly (Vote | undefined)[];

/** Asks one node. `onGranted` is called with its grant, even if that is late. */
export async function askNode(
  quorum: Quorum,
  node: QuorumNode,
  hold: QuorumHold,
  request: HoldRequest,
  terms: AcquireTerms,
  onGranted: (fence: number) => void,
): Promise<Vote> {
  const sent = quorum.clock.now();
  const result = await node.call((store) => {
    const call = Promise.resolve(store.acquire(request, terms));
    // Before `track`: if the grant is released at once, there is no moment without an unsettled call.
    call.then(
      (reply) => {
        node.onAcquireReply(request, sent, reply);
        if (reply.status === 'granted') onGranted(reply.grant.fence);
      },
      () => undefined, // The result of the call has the error.
    );
    return hold.track(node, call);
  });
  if (result.kind !== 'replied') return failure(result);
  const { reply } = result;
  if (reply.status !== 'granted') return denied(reply);
  const { grant, nowMs } = reply;
  return unlessRestarted(quorum, node, { kind: 'granted', grant, nowMs });
}

/** Whether a node with this vote may have granted the request, or may still grant it. */
export function mayBeGranted(vote: Vote): boolean {
  return (vote.kind === 'timeout' && vote.wasAsked) || vote.kind === 'unreachable';
}

/**
 * A later grant, counted from the reply to the first one. If only its fence was raised, its lease ends when it did before.
 * If it was granted again, the lease ends later; that is never exceeded.
 */
export function sinceFirst(first: Extract<Vote, { kind: 'granted' }>, later: Vote): Vote {
  return later.kind === 'granted' ? { ...later, nowMs: first.nowMs } : later;
}

/**
 * The fence that `quorumSize` nodes have in common. It is greater than those of all earlier owners: at least one of these
 * nodes has seen each of them.
 */
export function agreedFence(votes: Votes, quorumSize: number): number | undefined {
  const counts = new Map<number, number>();
  for (const vote of votes) {
    if (vote?.kind !== 'granted') continue;
    const count = (counts.get(vote.grant.fence) ?? 0) + 1;
    if (count >= quorumSize) return vote.grant.fence;
    counts.set(vote.grant.fence, count);
  }
  return undefined;
}

/**
 * A grant counts if the node has been running for longer than the longest lease: otherwise it may have forgotten one. The check
 * follows the grant: no restart can be in between.
 */
async function unlessRestarted(
  quorum: Quorum,
  node: QuorumNode,
  vote: Extract<Vote, { kind: 'granted' }>,
): Promise<Vote> {
  const { uptimeMs } = node.store;
  if (uptimeMs === undefined) return vote;
  const result = await node.call((store) => uptimeMs.call(store));
  // The node did grant: it has to be released like one that did not reply.
  if (result.kind !== 'replied')
    return result.kind === 'timeout' ? failure(result) : { kind: 'unreachable', error: result.error };
  const neededMs = quorum.maxLeaseMs * 1.01 + 2;
  return result.reply > neededMs ? vote : { kind: 'restarted' };
}

function denied(reply: Exclude<AcquireReply, { status: 'granted' }>): Vote {
  if (reply.status === 'cancelled') return { kind: 'cancelled', nowMs: reply.nowMs };
  return { kind: 'refused', leaseRemainingMs: reply.leaseRemainingMs, nowMs: reply.nowMs };
}

function failure(result: Exclude<CallResult<unknown>, { kind: 'replied' }>): Vote {
  return result.kind === 'timeout' ? { kind: 'timeout', wasAsked: true } : result;
}
