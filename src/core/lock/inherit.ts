import { pause } from '../base/clock.ts';
import type { Grant } from '../lease/grant.ts';
import { hasCode } from '../model/errors.ts';
import { isAncestor } from '../model/owner.ts';
import type { HoldRequest, TransferReply } from '../model/store.ts';
import type { Runtime } from '../runtime/runtime.ts';

const retryMs = 200;

/**
 * Lets the store know a grant under the branch around the one that acquired it, which has ended (a child that commits passes its
 * locks to its parent: J. E. B. Moss, Nested Transactions, 1981). Until then, services that the parent calls wait for it. Resolves
 * when the store has replied, or the grant has ended. Does nothing in a store that can't do it.
 */
export async function inherit(runtime: Runtime, grant: Grant, owner: string): Promise<void> {
  const { client, clock, grants, releases } = runtime;
  if (!client.capabilities.transfer) return;
  // A renewal under the old hold id must neither be on its way nor begin.
  while (grant.isRenewing && grant.isHeld) await pause(clock, retryMs);
  // The branch around that may have ended as well: then it has gone further already.
  if (!grant.isHeld || grant.request.owner === owner || !isAncestor(owner, grant.request.owner)) return;
  grant.isRenewing = true;
  const to = { ...grant.request, holdId: clock.randomId(), owner };
  const status = await passedTo(runtime, grant, to);
  grant.isRenewing = false;
  if (status === 'granted') grants.move(grant, to);
  if (!grant.isOpen)
    releases.releaseInBackground({ key: grant.key, category: grant.category, request: to, leaseMs: grant.longestMs });
  else if (status === 'lost') grants.lose(grant, 'The lock was lost: its lease had expired, or the key changed hands');
  else grants.renewSoon(grant);
}

/** Passes the hold on. A call without a reply is made again, which changes nothing if the first one was applied. */
async function passedTo(runtime: Runtime, grant: Grant, to: HoldRequest): Promise<TransferReply['status'] | undefined> {
  const { client, clock, releases } = runtime;
  const terms = { leaseMs: grant.leaseMs, tombstoneMs: releases.tombstoneMs(grant.longestMs) };
  while (grant.isHeld) {
    try {
      return (await client.transfer(grant, grant.request, to, terms)).status;
    } catch (error) {
      client.reportBackground('transfer', grant, error as Error);
      if (hasCode(error, 'ERR_LOCK_STORE') && error.outcome === 'not-applied') return undefined;
      await pause(clock, retryMs);
    }
  }
  return undefined;
}
