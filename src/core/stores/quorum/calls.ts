import type {
  HoldRequest,
  InspectReply,
  ReleaseReply,
  ReleaseTerms,
  RenewReply,
  RenewTerms,
} from '../../model/store.ts';
import { quorumError } from './errors.ts';
import { type Answer, callersId } from './node.ts';
import type { Quorum } from './quorum.ts';
import { leaseOf, reachedBy } from './tally.ts';

type Answers<T> = readonly (Answer<T> | undefined)[];

/** Renewed where a quorum renewed; lost where no quorum can have it any more. */
export async function renewQuorum(quorum: Quorum, request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
  const { size, spare, holds } = quorum;
  const hold = holds.find(request.holdId);
  const isKnown = hold !== undefined && hold.fence === terms.fence;
  if (isKnown) hold.leaseMs = Math.max(hold.leaseMs, terms.leaseMs);
  // A node that is not one of those that agreed has the hold with a fence of its own.
  const fences = isKnown ? hold.latestTry.granted : undefined;
  const isLost = ({ status }: RenewReply): boolean => status === 'lost';
  const answers = await quorum.ask<Answer<RenewReply>>(
    (node) => {
      const own = node.requestOf(hold?.request ?? request);
      return node.call((store) => store.renew(own, { ...terms, fence: fences?.get(node) ?? terms.fence }));
    },
    (soFar) => {
      const renewed = count(soFar, (reply) => !isLost(reply));
      const lost = count(soFar, isLost);
      if (renewed >= size || lost > spare) return 'enough';
      // Too few can still renew, and too few can still say `lost`.
      return lost + failures(soFar) > spare && lost + open(soFar) <= spare ? 'enough' : 'open';
    },
  );
  const renewed = replies(answers).filter((reply) => reply.status === 'renewed');
  if (renewed.length >= size) return { status: 'renewed', ...leaseOf(size, renewed) };
  if (count(answers, isLost) > spare) return { status: 'lost' };
  throw failed('renew', answers);
}

/**
 * Releases on every node, and goes on in the background where one does not answer. `released` where it stood on a quorum,
 * `expired` where a quorum of the nodes saw nobody else since.
 */
export async function releaseQuorum(quorum: Quorum, request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
  const { size, holds, releases } = quorum;
  const hold = holds.of(request);
  hold.end();
  const answers = await quorum.ask<Answer<ReleaseReply>>(
    (node) => releases.giveOnce(hold, node, { ...terms, announce: true }),
    (soFar) => {
      if (failures(soFar) > quorum.spare) return 'enough';
      return releaseStatus(quorum, soFar) === undefined ? 'open' : 'enough';
    },
  );
  holds.tidy(hold);
  const status = releaseStatus(quorum, answers);
  if (status === undefined) {
    throw failed('release', answers, releases.stop(hold, quorum.nodes));
  }
  for (const node of quorum.nodes) releases.forget(node.requestOf(hold.request));
  const nowMs = reachedBy(size, replies(answers), (reply) => reply.nowMs);
  return { status, nowMs, claims: [] };
}

function releaseStatus(
  { size, spare }: Quorum,
  answers: Answers<ReleaseReply>,
): 'released' | 'expired' | 'absent' | undefined {
  const released = count(answers, ({ status }) => status === 'released');
  const expired = count(answers, ({ status }) => status === 'expired');
  if (released >= size) return 'released';
  if (released + expired >= size && released + open(answers) < size) return 'expired';
  return replies(answers).length - released - expired > spare ? 'absent' : undefined;
}

/** Tells the holds that stand on a quorum, or would if the silent nodes had them, too. */
export async function inspectQuorum(quorum: Quorum, id: string): Promise<InspectReply> {
  const { size } = quorum;
  const answers = await look(quorum, id);
  const told = replies(answers);
  if (told.length < size) throw failed('inspect', answers);
  const seen = new Map<string, InspectReply['holds'][number][]>();
  for (const hold of told.flatMap(({ holds }) => holds)) {
    const holdId = callersId(hold.holdId);
    seen.set(holdId, [...(seen.get(holdId) ?? []), hold]);
  }
  const holds = [...seen].flatMap(([holdId, copies]) => {
    if (copies.length + quorum.nodes.length - told.length < size) return [];
    const rank = Math.min(size, copies.length);
    const fence = reachedBy(rank, copies, (copy) => copy.fence);
    const endMs = reachedBy(rank, copies, (copy) => copy.endMs);
    return [{ holdId, fence, endMs, isClaim: false, owner: copies[0]?.owner ?? '', mode: 'write' as const }];
  });
  const nowMs = reachedBy(size, told, (reply) => reply.nowMs);
  return { nowMs, holds, waiters: [] };
}

/** Takes the hold that has this fence on any node from every node. */
export async function forceReleaseQuorum(quorum: Quorum, id: string, fence: number): Promise<boolean> {
  const { size, spare } = quorum;
  // A node that is not one of those that agreed has the hold with a fence of its own.
  const seen = await look(quorum, id);
  const named = replies(seen).flatMap(({ holds }) => holds.filter((hold) => hold.fence === fence));
  const holdIds = new Set(named.map(({ holdId }) => callersId(holdId)));
  const answers = await quorum.ask<Answer<boolean>>(
    (node, index) => {
      const own = replies([seen[index]])[0]?.holds.find(({ holdId }) => holdIds.has(callersId(holdId)));
      return node.call((store) => store.forceRelease(id, own?.fence ?? fence));
    },
    (soFar) => {
      if (failures(soFar) > spare) return 'enough';
      return count(soFar, Boolean) >= size || count(soFar, (reply) => !reply) > spare ? 'enough' : 'open';
    },
  );
  if (count(answers, Boolean) >= size) return true;
  if (count(answers, (reply) => !reply) > spare) return false;
  throw failed('force release', answers);
}

function look(quorum: Quorum, id: string): Promise<Answers<InspectReply>> {
  return quorum.ask<Answer<InspectReply>>(
    (node) => node.call((store) => store.inspect(id)),
    (soFar) => {
      if (failures(soFar) > quorum.spare) return 'enough';
      return replies(soFar).length >= quorum.size ? 'enough' : 'open';
    },
  );
}

function replies<T>(answers: Answers<T>): T[] {
  return answers.flatMap((answer) => (answer?.kind === 'answered' ? [answer.reply] : []));
}

function count<T>(answers: Answers<T>, fits: (reply: T) => boolean): number {
  return replies(answers).filter(fits).length;
}

function failures(answers: Answers<unknown>): number {
  return answers.filter((answer) => answer !== undefined && answer.kind !== 'answered').length;
}

/** How many nodes have yet to answer. */
function open(answers: Answers<unknown>): number {
  return answers.filter((answer) => answer === undefined).length;
}

/** That all nodes refused says that nothing was done, unless one of them was asked again, and has yet to answer. */
function failed(operation: string, answers: Answers<unknown>, wasRepeated = false): Error {
  const isKnown = !wasRepeated && answers.every((answer) => answer?.kind === 'failed');
  return quorumError(operation, isKnown ? 'not-applied' : 'unknown', answers);
}
