import { elapsedMs, pause } from '../../base/clock.ts';
import { leaseDeadline, remainingMs } from '../../base/deadline.ts';
import type { LockStoreError } from '../../model/errors.ts';
import type { AcquireReply, AcquireTerms, HoldRequest, ReleaseReply } from '../../model/store.ts';
import { quorumError } from './errors.ts';
import type { QuorumHold, QuorumTry } from './hold.ts';
import type { Answer, QuorumNode } from './node.ts';
import type { Quorum } from './quorum.ts';
import { leaseOf, reachedBy, type Verdict } from './tally.ts';
import { agreedFence, askNode, mayBeGranted, sinceFirst, type Vote, type Votes } from './votes.ts';

const mostTries = 3;
const mostRounds = 3;
const pauseMs = 10;

/** What came of one try. */
interface TryOutcome {
  readonly reply: AcquireReply;
  /** What it fails with, unless another try follows. */
  readonly error?: LockStoreError | undefined;
  /** Whether nodes granted it, but too few, or with too different fences: nobody may have a quorum. */
  readonly isSplit: boolean;
  /** Whether it is known that nothing is left on any node, neither of it nor of the tries before. */
  readonly isUndone: boolean;
}

/**
 * Gets a hold from a quorum, by the Redlock algorithm (redis.io, "Distributed Locks with Redis"), with a fence that a
 * quorum agrees on. Rejects with a `LockStoreError` where too few nodes answered, or found no common fence. But for a grant,
 * nothing is left on any node that answers.
 */
export async function acquireQuorum(quorum: Quorum, hold: QuorumHold, terms: AcquireTerms): Promise<AcquireReply> {
  const { clock } = quorum;
  const { releaseCount } = hold;
  const start = clock.now();
  let wasUndone = true;
  for (let tries = 1; ; tries++) {
    const { reply, error, isSplit, isUndone } = await tryOnce(quorum, hold, terms, wasUndone);
    wasUndone = isUndone;
    if (hold.releaseCount !== releaseCount) return { status: 'cancelled', nowMs: reply.nowMs, claims: [] };
    const isOver = tries === mostTries || elapsedMs(clock.now(), start) >= quorum.nodeTimeoutMs;
    if (!isSplit || isOver) {
      if (error !== undefined) throw error;
      return reply;
    }
    // Others may have had the rest: who waits longest gives way.
    await pause(clock, clock.jitter() * pauseMs * 2 ** tries);
    if (hold.releaseCount !== releaseCount) return { status: 'cancelled', nowMs: reply.nowMs, claims: [] };
  }
}

/** `wasUndone`: the `isUndone` of the try before. */
async function tryOnce(quorum: Quorum, hold: QuorumHold, terms: AcquireTerms, wasUndone: boolean): Promise<TryOutcome> {
  const { clock, size } = quorum;
  const sent = clock.now();
  const wasHeld = hold.fence !== undefined;
  const attempt = wasHeld ? hold.latestTry : hold.begin();
  hold.leaseMs = Math.max(hold.leaseMs, terms.leaseMs);

  const votes = await collectVotes(quorum, hold, attempt, terms);
  const heard = told(votes);
  const nowMs = reachedBy(Math.min(size, heard.length), heard, (vote) => vote.nowMs);
  const isCancelled = votes.some((vote) => vote?.kind === 'cancelled') || attempt.state === 'lost';
  const won = isCancelled ? undefined : commonGrant(votes, size, hold.request.holdId);
  if (won !== undefined) {
    const leftMs = remainingMs(clock.now(), leaseDeadline(sent, won.grant.endMs - won.nowMs));
    // With less than a third it would be over before its first renewal.
    if (wasHeld || leftMs >= terms.leaseMs / 3) {
      attempt.state = 'won';
      hold.fence = won.grant.fence;
      return { reply: won, isSplit: false, isUndone: false };
    }
  }

  const isUndone = !wasHeld && (await giveBack(quorum, hold, attempt, votes)) && wasUndone;
  if (isCancelled && heard.length > 0)
    return { reply: { status: 'cancelled', nowMs, claims: [] }, isSplit: false, isUndone };
  const grants = granted(votes).length;
  const outcome = isUndone ? 'not-applied' : 'unknown';
  if (heard.length < size) throw quorumError('acquire', outcome, votes);
  const reply = {
    status: 'refused',
    leaseRemainingMs: leaseRemainingMs(votes, size),
    position: 0,
    nowMs,
    claims: [],
  } as const;
  if (grants < size || won !== undefined) return { reply, isSplit: grants > 0 && grants < size, isUndone };
  // Others of its owner may have come between; alone, it finds a common fence, or theirs.
  const error = quorumError('acquire', outcome, votes, 'The lock stores did not agree on a fence');
  return { reply, error, isSplit: !wasHeld, isUndone };
}

/** Asks every node; and again, a few times at most, those that granted, while they disagree on the fence: with the greatest. */
async function collectVotes(quorum: Quorum, hold: QuorumHold, attempt: QuorumTry, terms: AcquireTerms): Promise<Votes> {
  // A hold keeps its fence: only a new one comes with a proposal.
  let minFence = hold.fence === undefined ? quorum.proposal(hold.request) : undefined;
  let votes = await askNodes(quorum, hold, attempt, { ...terms, queue: false, minFence });
  for (let round = 1; round < mostRounds && attempt.state === 'open' && isDisagreed(quorum, votes); round++) {
    minFence = Math.max(...granted(votes).map(({ grant }) => grant.fence));
    votes = await askNodes(quorum, hold, attempt, { ...terms, queue: false, minFence }, votes);
  }
  return votes;
}

/** What a quorum granted with one fence, if any did. */
function commonGrant(
  votes: Votes,
  size: number,
  holdId: string,
): Extract<AcquireReply, { status: 'granted' }> | undefined {
  const fence = agreedFence(votes, size);
  if (fence === undefined) return undefined;
  const grants = granted(votes);
  const leases = grants.map(({ grant, nowMs }) => ({ endMs: grant.endMs, nowMs }));
  const { endMs, nowMs } = leaseOf(size, leases);
  const otherHolds = Math.max(...grants.map((vote) => vote.otherHolds));
  return { status: 'granted', grant: { holdId, fence, endMs, isClaim: false }, otherHolds, nowMs, claims: [] };
}

/** Asks every node, or again those that granted. */
function askNodes(
  quorum: Quorum,
  hold: QuorumHold,
  attempt: QuorumTry,
  terms: AcquireTerms,
  before?: Votes,
): Promise<Votes> {
  return quorum.ask(
    (node, index): Promise<Vote> => {
      const vote = before?.[index];
      if (before !== undefined && vote?.kind !== 'granted')
        return Promise.resolve(vote ?? { kind: 'timeout', wasAsked: true });
      if (hold.isDoubtful(node)) return Promise.resolve({ kind: 'timeout', wasAsked: false });
      const request = node.requestOf(hold.request);
      quorum.releases.forget(request);
      // However late it comes.
      const onGranted = (fence: number): void => {
        attempt.granted.set(node, fence);
        if (attempt.state === 'lost') void undo(quorum, hold, node, request, true);
      };
      const next = askNode(quorum, node, hold, request, terms, onGranted);
      return vote?.kind === 'granted' ? next.then((later) => sinceFirst(vote, later)) : next;
    },
    (votes) => judge(quorum, votes),
  );
}

function judge({ size, spare }: Quorum, votes: Votes): Verdict {
  const grants = granted(votes).length;
  const refusals = votes.filter((vote) => vote?.kind === 'refused').length;
  const isCancelled = votes.some((vote) => vote?.kind === 'cancelled');
  const failures = votes.filter((vote) => vote !== undefined).length - grants - refusals;
  if (isCancelled) return 'final';
  if (failures > spare || agreedFence(votes, size) !== undefined) return 'enough';
  return grants + refusals >= size && refusals + failures > spare ? 'enough' : 'open';
}

/**
 * Gives a try back to every node that granted it, whatever it said later, and waits for their answers; to those that may
 * have granted it, without a wait. Answers whether it is known that nothing of it stands, or will stand, anywhere.
 */
async function giveBack(quorum: Quorum, hold: QuorumHold, attempt: QuorumTry, votes: Votes): Promise<boolean> {
  // A node that was not asked may still have what an earlier try left there.
  const isHeard = votes.every((vote) => vote !== undefined && vote.kind !== 'timeout' && vote.kind !== 'unreachable');
  const isKnown = isHeard && quorum.unanswered(hold.request) === 0;
  // Who released it meanwhile has told every node, and hears what came of that.
  if (attempt.state === 'lost') return isKnown && attempt.granted.size === 0;
  attempt.state = 'lost';
  const given: Promise<boolean>[] = [];
  for (const [index, node] of quorum.nodes.entries()) {
    const vote = votes[index];
    const isGranted = attempt.granted.has(node);
    if (vote !== undefined && !isGranted && !mayBeGranted(vote)) continue;
    const undone = undo(quorum, hold, node, node.requestOf(hold.request), vote?.kind === 'granted');
    node.rename(hold.request);
    if (isGranted) given.push(undone.then(({ kind }) => kind === 'answered'));
  }
  return (await Promise.all(given)).every(Boolean) && isKnown;
}

/** Gives back what one node was asked for. Where that, or a copy of it, may come yet, it must find that it is over. */
function undo(
  { releases }: Quorum,
  hold: QuorumHold,
  node: QuorumNode,
  request: HoldRequest,
  isAnswered: boolean,
): Promise<Answer<ReleaseReply>> {
  const tombstoneMs = isAnswered && request.unanswered === 0 ? 0 : hold.leaseMs;
  return releases.give(hold, node, request, { tombstoneMs });
}

function isDisagreed({ size }: Quorum, votes: Votes): boolean {
  return granted(votes).length >= size && agreedFence(votes, size) === undefined;
}

type GrantedVote = Extract<Vote, { kind: 'granted' }>;

function granted(votes: Votes): GrantedVote[] {
  return votes.filter((vote): vote is GrantedVote => vote?.kind === 'granted');
}

type ToldVote = Extract<Vote, { nowMs: number }>;

/** Those of the nodes that have a say. */
function told(votes: Votes): ToldVote[] {
  return votes.filter((vote): vote is ToldVote => vote !== undefined && 'nowMs' in vote);
}

/** How long until a quorum of the nodes is free, by what those say that answered; no clock is compared with another. */
function leaseRemainingMs(votes: Votes, size: number): number {
  const spans = votes.flatMap((vote) => {
    if (vote?.kind === 'granted') return [0];
    return vote?.kind === 'refused' ? [vote.leaseRemainingMs] : [];
  });
  return -reachedBy(size, spans, (ms) => -ms);
}
