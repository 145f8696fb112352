import { type LockName, readName } from './key.ts';
import { branchOf, traceIdOf } from './owner.ts';
import { detachedProcess, instanceOf } from './process-name.ts';
import type { InspectReply } from './store.ts';
import type { LockInfo, PermitsInfo } from './types.ts';

/** A store's reply about a lock, in the words of the application. */
export function lockInfo({ key, id }: LockName, reply: InspectReply): LockInfo {
  const { nowMs, holds, waiters } = reply;
  return {
    key,
    category: readName(id).category,
    permits: permitsOf(reply),
    holds: holds.map(({ holdId, owner, process, fence, mode, endMs }) => ({
      holdId,
      traceId: traceIdOf(owner) || undefined,
      branch: branchOf(owner),
      instance: instanceOf(process),
      isDetached: process === detachedProcess,
      fence,
      mode,
      remainingMs: Math.round(endMs - nowMs),
      heldMs: Math.max(0, Math.round(nowMs - Math.floor(fence / 1000))),
    })),
    waiters: waiters.map(({ holdId, owner, process, mode, priority, sinceMs }) => ({
      holdId,
      traceId: traceIdOf(owner),
      branch: branchOf(owner),
      instance: instanceOf(process),
      mode,
      priority,
      // It may have been queued within this millisecond, or before the store's clock was set back.
      waitedMs: Math.max(0, Math.round(nowMs - sinceMs)),
    })),
  };
}

/** The permits of a lock, if it has any. */
export function permitsOf({ permits, holds }: InspectReply): PermitsInfo | undefined {
  if (permits === undefined) return undefined;
  return { limit: permits, held: new Set(holds.map(({ owner }) => owner)).size };
}
