import type { LockErrorDetails } from './errors/lock-error.ts';
import { LockConfigError } from './errors/mistakes.ts';
import type { StoreCapabilities } from './store.ts';
import type { HoldMode } from './types.ts';

/** Throws `LockConfigError` for a store whose holds can't be detached and resumed. */
export function assertTransferable(capabilities: StoreCapabilities, lock: LockErrorDetails): void {
  if (capabilities.transfer) return;
  throw new LockConfigError(
    'Expected a store whose holds can be detached (`capabilities.transfer`), got one that lacks this: take another store, or keep the hold in its request',
    lock,
  );
}

/** Throws `LockConfigError` for a lease that is longer than the store may be asked for. */
export function assertGrantable(leaseMs: number, capabilities: StoreCapabilities | undefined): void {
  const maxLeaseMs = capabilities?.maxLeaseMs ?? leaseMs;
  if (leaseMs <= maxLeaseMs) return;
  throw new LockConfigError(
    `Expected \`leaseMs\` to be \`maxLeaseMs\` (${maxLeaseMs}) of the store at most, got \`${leaseMs}\`: raise \`maxLeaseMs\` in every process`,
  );
}

/** Throws for a mode that the store lacks. */
export function assertMode(
  { modes, permits = false }: StoreCapabilities,
  mode: HoldMode,
  lock: LockErrorDetails,
): void {
  if (mode === 'read' && !modes) {
    throw new LockConfigError(
      "Expected a store that has modes for `mode: 'read'`, got one that lacks them (`capabilities.modes`): all its holds are to write",
      lock,
    );
  }
  if (mode === 'permit' && !permits) {
    throw new LockConfigError(
      'Expected a store whose keys can have permits (`capabilities.permits`), got one that lacks them: take another store for this key, or one lock for each of some keys',
      lock,
    );
  }
}
