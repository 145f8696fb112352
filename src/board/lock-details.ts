import { wholeMs } from '../core/base/clock.ts';
import type { LockName } from '../core/model/key.ts';
import { lockInfo } from '../core/model/lock-info.ts';
import { branchOf, isAncestor, traceIdOf } from '../core/model/owner.ts';
import type { InspectReply, StoreHold, StoreWaiter } from '../core/model/store.ts';
import type { HoldInfo, HoldMode, LockInfo, WaiterInfo } from '../core/model/types.ts';
import type { Runtime } from '../core/runtime/runtime.ts';

/** One lock in full, for the panel of the page. */
export interface LockDetails extends Pick<LockInfo, 'key' | 'category' | 'permits'> {
  /** The lock's name in the store. */
  readonly id: string;
  readonly holds: readonly (HoldInfo & Routed)[];
  readonly waiters: readonly BranchWaiter[];
  readonly localWaiters: readonly LocalWaiter[];
}

/** Details of this process's own requests. */
export interface Routed {
  /** The route of its request, if a guard has seen it; absent for those of other processes. */
  readonly route?: string | undefined;
}

/** A waiter, and the branches of its own trace that it waits for, without strangers that hold the key. */
export interface BranchWaiter extends WaiterInfo, Routed {
  readonly waitsFor: readonly string[];
}

/** A wait in this process for another branch of the same request, unknown to the store. */
export interface LocalWaiter extends Routed {
  readonly holdId: string;
  readonly traceId: string;
  readonly branch: string;
  readonly mode: HoldMode;
  /** Milliseconds since it was called. */
  readonly waitedMs: number;
}

/** The holders and waiters of a lock, with the waits of this process. Rejects with `LockStoreError`. */
export async function lockDetails(runtime: Runtime, name: LockName): Promise<LockDetails> {
  const reply = await runtime.client.inspect(name);
  const { holds, waiters, ...info } = lockInfo(name, reply);
  const waitsFor = branchWaits(reply);
  const routes = routesOn(runtime, name.id);
  const routed = <T extends { readonly holdId: string }>(each: T): T & Routed => ({
    ...each,
    route: routes.get(each.holdId),
  });
  return {
    id: name.id,
    ...info,
    holds: holds.map(routed),
    waiters: waiters.map((waiter, index) => ({ ...routed(waiter), waitsFor: waitsFor[index] ?? [] })),
    localWaiters: localWaiters(runtime, name.id).map(routed),
  };
}

/** The routes of this process's requests that hold a lock or wait for it, by hold id. */
function routesOn({ grants, acquires }: Runtime, id: string): ReadonlyMap<string, string | undefined> {
  const held = [...grants.all].map(({ request, route }) => ({ request, route }));
  const waiting = [...acquires.waiting].map(({ request, work: { route } }) => ({ request, route }));
  const ofLock = [...held, ...waiting].filter(({ request }) => request.id === id);
  return new Map(ofLock.map(({ request, route }) => [request.holdId, route]));
}

/** The branches of each waiter's trace that exclude it. Needs the owners: a branch alone does not show whether it may re-enter. */
function branchWaits({ holds, waiters }: InspectReply): readonly (readonly string[])[] {
  const byTrace = new Map<string, StoreHold[]>();
  for (const hold of holds) {
    const traceId = traceIdOf(hold.owner);
    const known = byTrace.get(traceId);
    if (known === undefined) byTrace.set(traceId, [hold]);
    else known.push(hold);
  }
  return waiters.map((waiter) => {
    const own = byTrace.get(traceIdOf(waiter.owner)) ?? [];
    return [...new Set(own.filter((hold) => excludes(hold, waiter)).map(({ owner }) => branchOf(owner)))];
  });
}

function excludes(hold: StoreHold, { owner, mode }: StoreWaiter): boolean {
  return !isAncestor(hold.owner, owner) && (hold.mode !== 'read' || mode !== 'read');
}

function localWaiters({ acquires, clock }: Runtime, id: string): readonly LocalWaiter[] {
  const now = clock.now();
  const tasks = [...acquires.waitingLocally].filter(({ request }) => request.id === id);
  return tasks.map(({ request: { holdId, owner, mode }, startedAt }) => ({
    holdId,
    traceId: traceIdOf(owner),
    branch: branchOf(owner),
    mode,
    waitedMs: wholeMs(now, startedAt),
  }));
}
