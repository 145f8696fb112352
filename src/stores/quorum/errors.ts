import { LockStoreError, type StoreOutcome } from '../../core/model/errors/failures.ts';

/** The result of a call on one node. `restarted`: it granted, but has not been running for the longest lease. */
export type NodeOutcome =
  | 'granted'
  | 'refused'
  | 'cancelled'
  | 'restarted'
  | 'replied'
  | 'timeout'
  | 'unreachable'
  | 'failed';

/**
 * The results of a call on each node, in the order of `stores`: the `cause` of a `LockStoreError` for a missing quorum.
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

interface NodeResult {
  readonly kind: NodeOutcome;
  readonly error?: unknown;
}

/** The error for too few replies. It names no host and no key. A node without a reply counts as timed out. */
export function quorumError(
  operation: string,
  outcome: StoreOutcome,
  results: readonly (NodeResult | undefined)[],
  what = `No quorum of the lock stores replied to ${operation}`,
): LockStoreError {
  const nodes = results.map((result) => result?.kind ?? 'timeout');
  const errors = results.flatMap((result) => (result?.error === undefined ? [] : [result.error]));
  return new LockStoreError(what, { cause: new QuorumFailure(nodes, errors), outcome });
}
