import type { LockStore } from '../../../src/core/model/store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { key } from '../../../src/testing/contract/stage.ts';

/**
 * Makes the contract's key thin and free, so that its next acquire needs no script. A store asks the server what its user may
 * do during its first calls, which are about other keys.
 */
export async function warmUp(store: LockStore): Promise<void> {
  for (const id of ['order:1', 'order:2', 'order:3', key]) {
    const request = { id, holdId: `warm-up-${id}`, owner: 'warm-up', process: 'warm-up', claimMs: longMs, priority: 0 };
    const hold = { ...request, mode: 'write' } as const;
    await store.acquire(hold, { leaseMs: longMs, queue: false, maxWaiters: 1, livenessMs: longMs });
    await store.release(hold, { tombstoneMs: longMs });
  }
}
