import { LockStoreError, type StoreOutcome } from '../../model/errors.ts';

/** What one node did with a call. `restarted`: it granted, but has not been up for the longest lease. */
export type NodeOutcome =
  | 'granted'
  | 'refused'
  | 'cancelled'
  | 'restarted'
  | 'answered'
  | 'timeout'
  | 'unreachable'
  | 'failed';

/** How each node answered, in the order of `stores`; the cause of the error for a missing quorum. */
export class QuorumFailure extends AggregateError {
  readonly nodes: readonly NodeOutcome[];

  constructor(nodes: readonly NodeOutcome[], errors: readonly unknown[]) {
    super(errors, `The lock stores' answers: ${nodes.join(', ')}`);
    this.name = 'QuorumFailure';
    this.nodes = nodes;
  }
}

interface Told {
  readonly kind: NodeOutcome;
  readonly error?: unknown;
}

/** The error where too few nodes answered; it names no host and no key. A node not waited for counts as timed out. */
export function quorumError(
  operation: string,
  outcome: StoreOutcome,
  answers: readonly (Told | undefined)[],
  what = `No quorum of the lock stores answered to ${operation}`,
): LockStoreError {
  const nodes = answers.map((answer) => answer?.kind ?? 'timeout');
  const errors = answers.flatMap((answer) => (answer?.error === undefined ? [] : [answer.error]));
  return new LockStoreError(what, { cause: new QuorumFailure(nodes, errors), outcome });
}
