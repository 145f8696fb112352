import type { AcquireReply, AcquireTerms, HoldRequest, StoreGrant } from '../../model/store.ts';
import type { QuorumHold } from './hold.ts';
import type { Answer, QuorumNode } from './node.ts';
import type { Quorum } from './quorum.ts';

/** What one node said to an acquire. `restarted`: it granted, but may have forgotten another's lease. */
export type Vote =
  | { readonly kind: 'granted'; readonly grant: StoreGrant; readonly otherHolds: number; readonly nowMs: number }
  | { readonly kind: 'refused'; readonly leaseRemainingMs: number; readonly nowMs: number }
  | { readonly kind: 'cancelled'; readonly nowMs: number }
  | { readonly kind: 'restarted' }
  | { readonly kind: 'timeout'; readonly wasAsked: boolean }
  | { readonly kind: 'unreachable' | 'failed'; readonly error: unknown };

/** In the order of the nodes; undefined where there was no answer yet, or nobody waited for it. */
export type Votes = readonly (Vote | undefined)[];

/** Asks one node. `onGranted` is called with its grant, however late it comes. */
export async function askNode(
  quorum: Quorum,
  node: QuorumNode,
  hold: QuorumHold,
  request: HoldRequest,
  terms: AcquireTerms,
  onGranted: (fence: number) => void,
): Promise<Vote> {
  const sent = quorum.clock.now();
  const answer = await node.call((store) => {
    const call = Promise.resolve(store.acquire(request, terms));
    // Before `track`: what is given back then keeps the node in doubt without a gap.
    call.then(
      (reply) => {
        node.noteClock(sent, reply.nowMs);
        if (reply.status === 'granted') onGranted(reply.grant.fence);
      },
      () => undefined, // The call itself tells.
    );
    return hold.track(node, call);
  });
  if (answer.kind !== 'answered') return failure(answer);
  const { reply } = answer;
  if (reply.status !== 'granted') return denied(reply);
  const { grant, otherHolds, nowMs } = reply;
  return unlessRestarted(quorum, node, { kind: 'granted', grant, otherHolds, nowMs });
}

/** Whether a node that voted so may have granted what it was asked for, or grant it yet. */
export function mayBeGranted(vote: Vote): boolean {
  return (vote.kind === 'timeout' && vote.wasAsked) || vote.kind === 'unreachable';
}

/**
 * A later grant as seen from the first one's reply: where only its fence was raised, it lasts as long as it did then. Where
 * it was granted anew it ends later, and is never taken to last beyond that.
 */
export function sinceFirst(first: Extract<Vote, { kind: 'granted' }>, later: Vote): Vote {
  return later.kind === 'granted' ? { ...later, nowMs: first.nowMs } : later;
}

/** The fence that `size` nodes have in common: as at least one of any such number saw each earlier owner, it is greater. */
export function agreedFence(votes: Votes, size: number): number | undefined {
  const counts = new Map<number, number>();
  for (const vote of votes) {
    if (vote?.kind !== 'granted') continue;
    const count = (counts.get(vote.grant.fence) ?? 0) + 1;
    if (count >= size) return vote.grant.fence;
    counts.set(vote.grant.fence, count);
  }
  return undefined;
}

/**
 * A grant counts once the node has been up for the longest lease: before, it may have forgotten one. It is asked after the
 * grant, so that no restart can come between.
 */
async function unlessRestarted(
  quorum: Quorum,
  node: QuorumNode,
  vote: Extract<Vote, { kind: 'granted' }>,
): Promise<Vote> {
  const { uptimeMs } = node.store;
  if (uptimeMs === undefined) return vote;
  const answer = await node.call((store) => uptimeMs.call(store));
  // The node did grant: it must be given back like one that did not answer.
  if (answer.kind !== 'answered')
    return answer.kind === 'timeout' ? failure(answer) : { kind: 'unreachable', error: answer.error };
  const neededMs = quorum.maxLeaseMs * 1.01 + 2;
  return answer.reply > neededMs ? vote : { kind: 'restarted' };
}

function denied(reply: Exclude<AcquireReply, { status: 'granted' }>): Vote {
  if (reply.status === 'cancelled') return { kind: 'cancelled', nowMs: reply.nowMs };
  return { kind: 'refused', leaseRemainingMs: reply.leaseRemainingMs, nowMs: reply.nowMs };
}

function failure(answer: Exclude<Answer<unknown>, { kind: 'answered' }>): Vote {
  return answer.kind === 'timeout' ? { kind: 'timeout', wasAsked: true } : answer;
}
