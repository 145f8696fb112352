import type {
  HoldRequest,
  InspectReply,
  ReleaseReply,
  ReleaseTerms,
  RenewReply,
  RenewTerms,
  StoreHold,
} from '../../core/model/store.ts';
import { quorumError } from './errors.ts';
import { type CallResult, originalId } from './node.ts';
import type { Quorum } from './quorum.ts';
import { kthLargest, leaseOf } from './tally.ts';

type CallResults<T> = readonly (CallResult<T> | undefined)[];

/** Renews on every node. `renewed` if a quorum renewed; `lost` if no quorum can still hold it. */
export async function renewQuorum(quorum: Quorum, request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
  const { quorumSize, maxFailures, holds } = quorum;
  const hold = holds.find(request.holdId);
  const isKnown = hold !== undefined && hold.fence === terms.fence;
  if (isKnown) hold.leaseMs = Math.max(hold.leaseMs, terms.leaseMs);
  // A node outside the quorum that agreed has the hold with another fence.
  const fences = isKnown ? hold.latestTry.granted : undefined;
  const isLost = ({ status }: RenewReply): boolean => status === 'lost';
  const results = await quorum.ask<CallResult<RenewReply>>(
    (node) => {
      const own = node.requestOf(hold?.request ?? request);
      return node.call((store) => store.renew(own, { ...terms, fence: fences?.get(node) ?? terms.fence }));
    },
    (soFar) => {
      const renewed = count(soFar, (reply) => !isLost(reply));
      const lost = count(soFar, isLost);
      if (renewed >= quorumSize || lost > maxFailures) return 'enough';
      // Too few nodes can still renew, and too few can still reply `lost`.
      return lost + failures(soFar) > maxFailures && lost + open(soFar) <= maxFailures ? 'enough' : 'open';
    },
  );
  const renewed = replies(results).filter((reply) => reply.status === 'renewed');
  if (renewed.length >= quorumSize) return { status: 'renewed', ...leaseOf(quorumSize, renewed) };
  if (count(results, isLost) > maxFailures) return { status: 'lost' };
  throw failed('renew', results);
}

/**
 * Releases on every node, and retries in the background on nodes that do not reply. `released` if a quorum held it;
 * `expired` if its lease had ended, but a quorum has had no other owner since.
 */
export async function releaseQuorum(quorum: Quorum, request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
  const { quorumSize, holds, releases } = quorum;
  const hold = holds.of(request);
  hold.end();
  const results = await quorum.ask<CallResult<ReleaseReply>>(
    (node) => releases.releaseOnce(hold, node, { ...terms, announce: true }),
    (soFar) => {
      if (failures(soFar) > quorum.maxFailures) return 'enough';
      return releaseStatus(quorum, soFar) === undefined ? 'open' : 'enough';
    },
  );
  holds.dropIfSettled(hold);
  const status = releaseStatus(quorum, results);
  if (status === undefined) {
    throw failed('release', results, releases.stop(hold, quorum.nodes));
  }
  for (const node of quorum.nodes) releases.forget(node.requestOf(hold.request));
  const nowMs = kthLargest(quorumSize, replies(results), (reply) => reply.nowMs);
  return { status, nowMs, claims: [] };
}

function releaseStatus(
  { quorumSize, maxFailures }: Quorum,
  results: CallResults<ReleaseReply>,
): 'released' | 'expired' | 'absent' | undefined {
  const released = count(results, ({ status }) => status === 'released');
  const expired = count(results, ({ status }) => status === 'expired');
  if (released >= quorumSize) return 'released';
  if (released + expired >= quorumSize && released + open(results) < quorumSize) return 'expired';
  return replies(results).length - released - expired > maxFailures ? 'absent' : undefined;
}

/** Returns the holds that a quorum has, or would have if the nodes that did not reply had them, too. */
export async function inspectQuorum(quorum: Quorum, id: string): Promise<InspectReply> {
  const { quorumSize } = quorum;
  const results = await look(quorum, id);
  const known = replies(results);
  if (known.length < quorumSize) throw failed('inspect', results);
  const seen = new Map<string, StoreHold[]>();
  for (const hold of known.flatMap(({ holds }) => holds)) {
    const holdId = originalId(hold.holdId);
    seen.set(holdId, [...(seen.get(holdId) ?? []), hold]);
  }
  const holds = [...seen].flatMap(([holdId, copies]) => {
    if (copies.length + quorum.nodes.length - known.length < quorumSize) return [];
    const rank = Math.min(quorumSize, copies.length);
    const fence = kthLargest(rank, copies, (copy) => copy.fence);
    const endMs = kthLargest(rank, copies, (copy) => copy.endMs);
    const { owner, process } = copies[0] as StoreHold;
    return [{ holdId, fence, endMs, isClaim: false, owner, process, mode: 'write' as const }];
  });
  const nowMs = kthLargest(quorumSize, known, (reply) => reply.nowMs);
  return { nowMs, holds, waiters: [] };
}

/** Removes the hold that has this fence on any node from every node. */
export async function forceReleaseQuorum(quorum: Quorum, id: string, fence: number): Promise<boolean> {
  const { quorumSize, maxFailures } = quorum;
  // A node outside the quorum that agreed has the hold with another fence.
  const seen = await look(quorum, id);
  const named = replies(seen).flatMap(({ holds }) => holds.filter((hold) => hold.fence === fence));
  const holdIds = new Set(named.map(({ holdId }) => originalId(holdId)));
  const results = await quorum.ask<CallResult<boolean>>(
    (node, index) => {
      const own = replies([seen[index]])[0]?.holds.find(({ holdId }) => holdIds.has(originalId(holdId)));
      return node.call((store) => store.forceRelease(id, own?.fence ?? fence));
    },
    (soFar) => {
      if (failures(soFar) > maxFailures) return 'enough';
      return count(soFar, Boolean) >= quorumSize || count(soFar, (reply) => !reply) > maxFailures ? 'enough' : 'open';
    },
  );
  if (count(results, Boolean) >= quorumSize) return true;
  if (count(results, (reply) => !reply) > maxFailures) return false;
  throw failed('force release', results);
}

function look(quorum: Quorum, id: string): Promise<CallResults<InspectReply>> {
  return quorum.ask<CallResult<InspectReply>>(
    (node) => node.call((store) => store.inspect(id)),
    (soFar) => {
      if (failures(soFar) > quorum.maxFailures) return 'enough';
      return replies(soFar).length >= quorum.quorumSize ? 'enough' : 'open';
    },
  );
}

function replies<T>(results: CallResults<T>): T[] {
  return results.flatMap((result) => (result?.kind === 'replied' ? [result.reply] : []));
}

function count<T>(results: CallResults<T>, fits: (reply: T) => boolean): number {
  return replies(results).filter(fits).length;
}

function failures(results: CallResults<unknown>): number {
  return results.filter((result) => result !== undefined && result.kind !== 'replied').length;
}

/** How many nodes have not replied yet. */
function open(results: CallResults<unknown>): number {
  return results.filter((result) => result === undefined).length;
}

/** If all nodes refused, nothing was done, unless one of them was asked again and has not replied yet. */
function failed(operation: string, results: CallResults<unknown>, wasRepeated = false): Error {
  const isKnown = !wasRepeated && results.every((result) => result?.kind === 'failed');
  return quorumError(operation, isKnown ? 'not-applied' : 'unknown', results);
}
