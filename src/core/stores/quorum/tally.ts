import type { Clock, Timer } from '../../base/clock.ts';
import type { QuorumNode } from './node.ts';

/** What the answers so far say: nothing yet, enough to go by, or all that can be known. */
export type Verdict = 'open' | 'enough' | 'final';

/**
 * Collects the nodes' answers, in the order of the nodes, until they are final, or all there. Once they are enough,
 * `graceMs` more are given to the nodes that are not known to be silent. No call may reject.
 */
export function collect<T>(
  clock: Clock,
  nodes: readonly QuorumNode[],
  calls: readonly Promise<T>[],
  graceMs: number,
  judge: (answers: readonly (T | undefined)[]) => Verdict,
): Promise<readonly (T | undefined)[]> {
  return new Promise((resolve) => {
    const answers: (T | undefined)[] = calls.map(() => undefined);
    // Started once the answers are enough, cancelled with the last one.
    let grace: Timer | undefined;
    let isOver = false;
    const finish = (): void => {
      isOver = true;
      grace?.cancel();
      resolve([...answers]);
    };
    const take = (index: number, answer: T): void => {
      if (isOver) return;
      answers[index] = answer;
      const verdict = judge(answers);
      const isAwaited = nodes.some((node, at) => answers[at] === undefined && !(verdict === 'enough' && node.isSilent));
      if (verdict === 'final' || !isAwaited) finish();
      else if (verdict === 'enough') grace ??= clock.after(graceMs, finish);
    };
    for (const [index, call] of calls.entries()) void call.then((answer) => take(index, answer));
  });
}

/** The `rank`-th largest measure: what at least `rank` of them reach. */
export function reachedBy<T>(rank: number, all: readonly T[], measure: (one: T) => number): number {
  const measures = all.map(measure).sort((a, b) => b - a);
  return measures[rank - 1] ?? Number.NEGATIVE_INFINITY;
}

/**
 * Until when a quorum has a lease, and a time as long before that as it lasts from the call on: each node tells that by its
 * own clock.
 */
export function leaseOf(
  size: number,
  leases: readonly { readonly endMs: number; readonly nowMs: number }[],
): { readonly endMs: number; readonly nowMs: number } {
  const endMs = reachedBy(size, leases, (lease) => lease.endMs);
  const spanMs = reachedBy(size, leases, (lease) => lease.endMs - lease.nowMs);
  return { endMs, nowMs: endMs - spanMs };
}
