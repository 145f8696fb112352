import type { Grant } from '../lease/grant.ts';
import { lostAtRelease } from '../lease/grant-registry.ts';
import { LockConfigError } from '../model/errors/mistakes.ts';
import { eventOf } from '../model/events.ts';
import { createToken } from '../model/hold-token.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** Throws `LockConfigError` if the scope has other holds on the key. */
export function assertAlone(grant: Grant): void {
  if (grant.holdCount === 1) return;
  throw new LockConfigError(
    `Expected to detach the only hold that a request or job has on the key, got one of ${grant.holdCount}: release the others first`,
    grant,
  );
}

/**
 * Passes a grant without holds on to a hold id that belongs to no process, for `leaseMs`. Returns its token. Rejects with
 * `LockLostError`, with `LockStoreError`, and with `LockConfigError` if its owner has other holds on the key; the grant is then
 * released, and nothing stays held.
 */
export async function detach(runtime: Runtime, grant: Grant, leaseMs: number): Promise<string> {
  const { client, clock, events, grants, releases } = runtime;
  const { token, request } = createToken(grant.name, grant.request, clock.randomId());
  const withdrawn = grants.withdraw(grant);
  try {
    const terms = { leaseMs, tombstoneMs: releases.tombstoneMs(grant.longestMs) };
    const { status } = await client.transfer(grant, grant.request, request, terms, { isHeld: true });
    if (status !== 'granted') throw status === 'lost' ? lostAtRelease(grant) : heldElsewhere(grant);
    const { fence, heldMs } = grant;
    events.emit('detached', { ...eventOf(grant), fence, heldMs, leaseMs });
    return token;
  } catch (error) {
    const { key, category } = grant;
    releases.releaseInBackground({ key, category, request, leaseMs });
    grants.release(grant);
    throw error;
  } finally {
    withdrawn();
  }
}

function heldElsewhere(grant: Grant): LockConfigError {
  return new LockConfigError(
    'Expected to detach the only hold that a trace has on the key, got a further one of another request, job or service: release that one first',
    grant,
  );
}
