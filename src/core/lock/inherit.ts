import { pause } from '../base/clock.ts';
import type { Grant } from '../lease/grant.ts';
import { hasCode } from '../model/errors/by-code.ts';
import { isAncestor } from '../model/owner.ts';
import type { HoldRequest, TransferReply } from '../model/store.ts';
import type { Runtime } from '../runtime/runtime.ts';

const retryMs = 200;
const refusedMs = 1_000;

/**
 * Passes a grant, in the store, from a branch that has ended to the branch around it (a child that commits passes its locks to its
 * parent: J. E. B. Moss, Nested Transactions, 1981). Until then, services that the parent calls wait for it. Resolves when the
 * store has done so or the grant has ended.
 */
export async function inherit(runtime: Runtime, grant: Grant, owner: string): Promise<void> {
  const { clock } = runtime;
  for (;;) {
    // A renewal under the old hold id must neither be in flight nor begin.
    while ((grant.isRenewing || grant.extensions > 0) && grant.isHeld) await pause(clock, retryMs);
    // If the branch around has ended as well, the grant has moved further already.
    if (!grant.isHeld || grant.request.owner === owner || !isAncestor(owner, grant.request.owner)) return;
    const passing = passTo(runtime, grant, owner);
    grant.passing = passing;
    const hasEnded = await passing;
    grant.passing = undefined;
    if (hasEnded) return;
    // The store did not take the call. The lease is renewed meanwhile.
    await pause(clock, refusedMs);
  }
}

/** Returns whether the grant has passed to the owner, or has ended. */
async function passTo(runtime: Runtime, grant: Grant, owner: string): Promise<boolean> {
  const { clock, grants, releases } = runtime;
  grant.isRenewing = true;
  const to = { ...grant.request, holdId: clock.randomId(), owner };
  const status = await statusOf(runtime, grant, to);
  grant.isRenewing = false;
  if (status === 'granted') grants.move(grant, to);
  if (!grant.isOpen)
    releases.releaseInBackground({ key: grant.key, category: grant.category, request: to, leaseMs: grant.longestMs });
  else if (status === 'lost') grants.lose(grant, 'The lock was lost: its lease had expired, or the key changed hands');
  else grants.renewSoon(grant);
  return !grant.isOpen || status === 'granted';
}

/** Passes the hold on. Repeats a call without a reply, which changes nothing if the first one was applied. */
async function statusOf(runtime: Runtime, grant: Grant, to: HoldRequest): Promise<TransferReply['status'] | undefined> {
  const { client, clock, releases } = runtime;
  const terms = { leaseMs: grant.leaseMs, tombstoneMs: releases.tombstoneMs(grant.longestMs) };
  while (grant.isHeld) {
    try {
      return (await client.transfer(grant, grant.request, to, terms, { isHeld: true })).status;
    } catch (error) {
      client.reportBackground('transfer', grant, error as Error);
      if (hasCode(error, 'ERR_LOCK_STORE') && error.outcome === 'not-applied') return undefined;
      // `detach` and `extend` wait for it.
      await pause(clock, retryMs, true);
    }
  }
  return undefined;
}
