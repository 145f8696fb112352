import { elapsedMs, pause } from '../../core/base/clock.ts';
import { leaseDeadline, remainingMs } from '../../core/base/deadline.ts';
import { inBackground } from '../../core/base/safely.ts';
import type { LockStoreError } from '../../core/model/errors/failures.ts';
import type { AcquireReply, AcquireTerms, HoldRequest, ReleaseReply } from '../../core/model/store.ts';
import { quorumError } from './errors.ts';
import type { QuorumHold, QuorumTry } from './hold.ts';
import type { CallResult, QuorumNode } from './node.ts';
import type { Quorum } from './quorum.ts';
import { kthLargest, leaseOf, type Verdict } from './tally.ts';
import { agreedFence, askNode, mayBeGranted, sinceFirst, type Vote, type Votes } from './votes.ts';

const maxTries = 3;
const maxRounds = 3;
const pauseMs = 10;

/** The result of one try. */
interface TryOutcome {
  readonly reply: AcquireReply;
  /** The error to fail with, unless another try follows. */
  readonly error?: LockStoreError | undefined;
  /** Whether nodes granted it, but too few of them or with different fences: perhaps no caller has a quorum. */
  readonly isSplit: boolean;
  /** Whether certainly no node has anything left of this try and the tries before. */
  readonly isUndone: boolean;
}

/**
 * Gets a hold from a quorum, by the Redlock algorithm (redis.io, "Distributed Locks with Redis"), with a fence that a
 * quorum agrees on. Rejects with a `LockStoreError` if too few nodes replied or agreed on a fence. Unless it was granted,
 * nothing is left on any node that replies.
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
    const isLastTry = tries === maxTries || elapsedMs(clock.now(), start) >= quorum.nodeTimeoutMs;
    if (!isSplit || isLastTry) {
      if (error !== undefined) throw error;
      return reply;
    }
    // Other callers may have the other nodes. With random pauses, one of them is first.
    await pause(clock, clock.jitter() * pauseMs * 2 ** tries);
    if (hold.releaseCount !== releaseCount) return { status: 'cancelled', nowMs: reply.nowMs, claims: [] };
  }
}

/** `wasUndone`: the `isUndone` of the try before. */
async function tryOnce(quorum: Quorum, hold: QuorumHold, terms: AcquireTerms, wasUndone: boolean): Promise<TryOutcome> {
  const { clock, quorumSize } = quorum;
  const sent = clock.now();
  const wasHeld = hold.fence !== undefined;
  const attempt = wasHeld ? hold.latestTry : hold.begin();
  hold.leaseMs = Math.max(hold.leaseMs, terms.leaseMs);

  const votes = await collectVotes(quorum, hold, attempt, terms);
  const replies = repliesOf(votes);
  const nowMs = kthLargest(Math.min(quorumSize, replies.length), replies, (vote) => vote.nowMs);
  const isCancelled = votes.some((vote) => vote?.kind === 'cancelled') || attempt.state === 'lost';
  const won = isCancelled ? undefined : commonGrant(votes, quorumSize, hold.request.holdId);
  if (won !== undefined) {
    const leftMs = remainingMs(clock.now(), leaseDeadline(sent, won.grant.endMs - won.nowMs));
    // With less than a third left, the lease would end before its first renewal.
    if (wasHeld || leftMs >= terms.leaseMs / 3) {
      attempt.state = 'won';
      hold.fence = won.grant.fence;
      return { reply: won, isSplit: false, isUndone: false };
    }
  }

  const isUndone = !wasHeld && (await undoTry(quorum, hold, attempt, votes)) && wasUndone;
  if (isCancelled && replies.length > 0)
    return { reply: { status: 'cancelled', nowMs, claims: [] }, isSplit: false, isUndone };
  const grants = granted(votes).length;
  const outcome = isUndone ? 'not-applied' : 'unknown';
  if (replies.length < quorumSize) throw quorumError('acquire', outcome, votes);
  const reply = {
    status: 'refused',
    leaseRemainingMs: leaseRemainingMs(votes, quorumSize),
    position: 0,
    nowMs,
    claims: [],
  } as const;
  if (grants < quorumSize || won !== undefined) return { reply, isSplit: grants > 0 && grants < quorumSize, isUndone };
  // Other holds of the same owner may have been granted in between. Alone, it gets a common fence, or theirs.
  const error = quorumError('acquire', outcome, votes, 'The lock stores did not agree on a fence');
  return { reply, error, isSplit: !wasHeld, isUndone };
}

/**
 * Asks every node. While the nodes that granted disagree on the fence, they are asked again, a few times at most, for the
 * greatest of their fences.
 */
async function collectVotes(quorum: Quorum, hold: QuorumHold, attempt: QuorumTry, terms: AcquireTerms): Promise<Votes> {
  // A hold keeps its fence: only for a new hold a fence is proposed.
  let minFence = hold.fence === undefined ? quorum.proposal(hold.request) : undefined;
  let votes = await askNodes(quorum, hold, attempt, { ...terms, queue: false, minFence });
  for (let round = 1; round < maxRounds && attempt.state === 'open' && isDisagreed(quorum, votes); round++) {
    minFence = Math.max(...granted(votes).map(({ grant }) => grant.fence));
    votes = await askNodes(quorum, hold, attempt, { ...terms, queue: false, minFence }, votes);
  }
  return votes;
}

/** The grant of a quorum with one fence, if there is one. */
function commonGrant(
  votes: Votes,
  quorumSize: number,
  holdId: string,
): Extract<AcquireReply, { status: 'granted' }> | undefined {
  const fence = agreedFence(votes, quorumSize);
  if (fence === undefined) return undefined;
  const grants = granted(votes);
  const leases = grants.map(({ grant, nowMs }) => ({ endMs: grant.endMs, nowMs }));
  const { endMs, nowMs } = leaseOf(quorumSize, leases);
  const otherHolds = Math.max(...grants.map(({ grant }) => grant.otherHolds ?? 0));
  const equalHolds = Math.max(...grants.map(({ grant }) => grant.equalHolds ?? 0));
  const grant = { holdId, fence, endMs, isClaim: false, otherHolds, equalHolds };
  return { status: 'granted', grant, nowMs, claims: [] };
}

/** Asks every node; with `before`, only the nodes that granted then. */
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
      if (hold.hasUnsettledCalls(node)) return Promise.resolve({ kind: 'timeout', wasAsked: false });
      const request = node.requestOf(hold.request);
      quorum.releases.forget(request);
      // Also if the grant is late.
      const onGranted = (fence: number): void => {
        attempt.granted.set(node, fence);
        if (attempt.state === 'lost') inBackground(undo(quorum, hold, node, request, true));
      };
      const next = askNode(quorum, node, hold, request, terms, onGranted);
      return vote?.kind === 'granted' ? next.then((later) => sinceFirst(vote, later)) : next;
    },
    (votes) => judge(quorum, votes),
  );
}

/** The decision of the votes so far. */
function judge({ quorumSize, maxFailures }: Quorum, votes: Votes): Verdict {
  const grants = granted(votes).length;
  const refusals = votes.filter((vote) => vote?.kind === 'refused').length;
  const isCancelled = votes.some((vote) => vote?.kind === 'cancelled');
  const failures = votes.filter((vote) => vote !== undefined).length - grants - refusals;
  if (isCancelled) return 'final';
  if (failures > maxFailures || agreedFence(votes, quorumSize) !== undefined) return 'enough';
  return grants + refusals >= quorumSize && refusals + failures > maxFailures ? 'enough' : 'open';
}

/**
 * Releases a try on every node that ever granted it, and waits for the replies. Nodes that may have granted it are released
 * without a wait. Returns whether certainly no node has anything of the try, now or later.
 */
async function undoTry(quorum: Quorum, hold: QuorumHold, attempt: QuorumTry, votes: Votes): Promise<boolean> {
  // A node that was not asked may still hold what an earlier try left there.
  const haveAllReplied = votes.every(
    (vote) => vote !== undefined && vote.kind !== 'timeout' && vote.kind !== 'unreachable',
  );
  const isKnown = haveAllReplied && !quorum.mayArriveLater(hold.request);
  // It was released meanwhile: that release is sent to every node and gets the replies.
  if (attempt.state === 'lost') return isKnown && attempt.granted.size === 0;
  attempt.state = 'lost';
  const undone: Promise<boolean>[] = [];
  for (const [index, node] of quorum.nodes.entries()) {
    const vote = votes[index];
    const isGranted = attempt.granted.has(node);
    if (vote !== undefined && !isGranted && !mayBeGranted(vote)) continue;
    const release = undo(quorum, hold, node, node.requestOf(hold.request), vote?.kind === 'granted');
    node.rename(hold.request);
    if (isGranted) undone.push(release.then(({ kind }) => kind === 'replied'));
  }
  return (await Promise.all(undone)).every(Boolean) && isKnown;
}

/** Releases a request on one node. If the acquire or a copy of it may still arrive, the node has to remember the release. */
function undo(
  { releases }: Quorum,
  hold: QuorumHold,
  node: QuorumNode,
  request: HoldRequest,
  hasReplied: boolean,
): Promise<CallResult<ReleaseReply>> {
  const tombstoneMs = hasReplied && node.mayArriveLater(request) === false ? 0 : hold.leaseMs;
  return releases.release(hold, node, request, { tombstoneMs });
}

function isDisagreed({ quorumSize }: Quorum, votes: Votes): boolean {
  return granted(votes).length >= quorumSize && agreedFence(votes, quorumSize) === undefined;
}

type GrantedVote = Extract<Vote, { kind: 'granted' }>;

function granted(votes: Votes): GrantedVote[] {
  return votes.filter((vote): vote is GrantedVote => vote?.kind === 'granted');
}

type ReplyVote = Extract<Vote, { nowMs: number }>;

/** The votes of the nodes that replied and count. */
function repliesOf(votes: Votes): ReplyVote[] {
  return votes.filter((vote): vote is ReplyVote => vote !== undefined && 'nowMs' in vote);
}

/** How long until a quorum of the nodes is free, by their replies; no clock is compared with another. */
function leaseRemainingMs(votes: Votes, quorumSize: number): number {
  const spans = votes.flatMap((vote) => {
    if (vote?.kind === 'granted') return [0];
    return vote?.kind === 'refused' ? [vote.leaseRemainingMs] : [];
  });
  return -kthLargest(quorumSize, spans, (ms) => -ms);
}
