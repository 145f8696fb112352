import { LockStoreError, type StoreOutcome } from '../../core/model/errors.ts';

/** What one node did with a call. `restarted`: it granted, but has not been running for the longest lease. */
export type NodeOutcome =
  | 'granted'
  | 'refused'
  | 'cancelled'
  | 'restarted'
  | 'answered'
  | 'timeout'
  | 'unreachable'
  | 'failed';

/**
 * What each node did, in the order of `stores`: the `cause` of a `LockStoreError` for a missing quorum.
 *
 * @example
 * ```ts
 * import { lock, LockStoreError } from 'reenlock';
 * import { QuorumFailure } from 'reenlock/redis';
 *
 * await lock.acquire('order:42').catch((error: unknown) => {
 *   if (error instanceof LockStoreError && error.cause instanceof QuorumFailure) console.error(error.cause.nodes);
 *   throw error;
 * });
 * ```
 */
export class QuorumFailure extends AggregateError {
  readonly nodes: readonly NodeOutcome[];

  constructor(nodes: readonly NodeOutcome[], errors: readonly unknown[]) {
    super(errors, `The lock stores' replies: ${nodes.join(', ')}`);
    this.name = 'QuorumFailure';
    this.nodes = nodes;
  }
}

interface NodeAnswer {
  readonly kind: NodeOutcome;
  readonly error?: unknown;
}

/** The error for too few replies. It names no host and no key. A node that was not waited for counts as timed out. */
export function quorumError(
  operation: string,
  outcome: StoreOutcome,
  answers: readonly (NodeAnswer | undefined)[],
  what = `No quorum of the lock stores replied to ${operation}`,
): LockStoreError {
  const nodes = answers.map((answer) => answer?.kind ?? 'timeout');
  const errors = answers.flatMap((answer) => (answer?.error === undefined ? [] : [answer.error]));
  return new LockStoreError(what, { cause: new QuorumFailure(nodes, errors), outcome });
}
