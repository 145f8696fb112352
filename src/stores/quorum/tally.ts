import type { Clock, Timer } from '../../core/base/clock.ts';
import { inBackground } from '../../core/base/safely.ts';
import type { QuorumNode } from './node.ts';

/** The value of the replies so far: not enough to decide, enough, or all that matters. */
export type Verdict = 'open' | 'enough' | 'final';

/**
 * Collects the replies of the nodes, in the order of the nodes, until they are final or complete. Once they are enough, it
 * waits `graceMs` more for the nodes that are not known to be silent. No call may reject.
 */
export function collect<T>(
  clock: Clock,
  nodes: readonly QuorumNode[],
  calls: readonly Promise<T>[],
  graceMs: number,
  judge: (results: readonly (T | undefined)[]) => Verdict,
): Promise<readonly (T | undefined)[]> {
  return new Promise((resolve) => {
    const replies: (T | undefined)[] = calls.map(() => undefined);
    // Started once the replies are enough, cancelled with the last one.
    let grace: Timer | undefined;
    let isSettled = false;
    const finish = (): void => {
      isSettled = true;
      grace?.cancel();
      resolve([...replies]);
    };
    const take = (index: number, result: T): void => {
      if (isSettled) return;
      replies[index] = result;
      const verdict = judge(replies);
      const isAwaited = nodes.some((node, at) => replies[at] === undefined && !(verdict === 'enough' && node.isSilent));
      if (verdict === 'final' || !isAwaited) finish();
      else if (verdict === 'enough') grace ??= clock.after(graceMs, finish);
    };
    for (const [index, call] of calls.entries()) inBackground(call.then((result) => take(index, result)));
  });
}

/** The k-th largest measure: at least `k` of them are that large. Minus infinity if there are fewer. */
export function kthLargest<T>(k: number, all: readonly T[], measure: (one: T) => number): number {
  const measures = all.map(measure).sort((a, b) => b - a);
  return measures[k - 1] ?? Number.NEGATIVE_INFINITY;
}

/**
 * The lease that a quorum has: its end, and a `nowMs` that is as long before the end as the lease lasts from the call on.
 * Each node counts by its own clock.
 */
export function leaseOf(
  quorumSize: number,
  leases: readonly { readonly endMs: number; readonly nowMs: number }[],
): { readonly endMs: number; readonly nowMs: number } {
  const endMs = kthLargest(quorumSize, leases, (lease) => lease.endMs);
  const spanMs = kthLargest(quorumSize, leases, (lease) => lease.endMs - lease.nowMs);
  return { endMs, nowMs: endMs - spanMs };
}
