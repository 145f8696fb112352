import { CallSite } from '../base/call-site.ts';
import { type Granted, grantedByReply, grantedTooLate } from '../client/granted.ts';
import { assertGrantable, assertTransferable } from '../model/capabilities.ts';
import { failAt } from '../model/errors/at-call.ts';
import { hasCode } from '../model/errors/by-code.ts';
import { HoldTokenError } from '../model/errors/mistakes.ts';
import { LocksClosedError } from '../model/errors/refusals.ts';
import { eventOf } from '../model/events.ts';
import { type DetachedHold, readToken } from '../model/hold-token.ts';
import type { LockName } from '../model/key.ts';
import { acquireRules, acquireSettings } from '../model/options.ts';
import type { HoldRequest } from '../model/store.ts';
import type { AcquireOptions, Hold } from '../model/types.ts';
import { checkOptions, type Rules } from '../model/validate.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { cancellationError } from '../scope/cancellation.ts';
import { ownBranch } from '../scope/context.ts';
import type { Branch, Scope } from '../scope/scope.ts';
import { firstHold } from './hold.ts';

/** How a resumed hold behaves. The defaults are those of the `Locks`; mode and permits are those of the detached hold. */
export type ResumeOptions = Pick<AcquireOptions, 'leaseMs' | 'renew' | 'maxHoldMs' | 'reentrant'>;

const { leaseMs, renew, maxHoldMs, reentrant } = acquireRules;
const resumeRules: Rules<ResumeOptions> = { leaseMs, renew, maxHoldMs, reentrant };

/**
 * Makes a detached hold a hold of the current branch of the request or job, as `acquire` does. It may be extended, released or detached
 * again. Its lease is then `leaseMs`, and is renewed. It gets a new fence, and the token can't be used again. If several calls use one token, only one of them gets the hold.
 *
 * Rejects with `HoldTokenError` if the token belongs to no hold: its lease has expired, it was resumed before, or `detach` did not
 * return it. Rejects with `LockStoreError` if the store did not reply: with the outcome `not-applied` you can use the token again,
 * otherwise the hold is released. Rejects with `LockScopeError` outside a request or job, with `LocksClosedError`, and with
 * `LockConfigError` for bad options and for a store that can't do it.
 *
 * @example
 * ```ts
 * import { resumeHold, runInTrace } from 'reenlock';
 *
 * export function finishExport(token: string) {
 *   return runInTrace(async () => {
 *     await using hold = await resumeHold(token);
 *     await writeReport(hold.signal);
 *   });
 * }
 * ```
 */
export async function resumeHold(token: string, options?: ResumeOptions): Promise<Hold> {
  const checked = checkOptions(options, resumeRules, 'resumeHold');
  const detached = readToken(token);
  if (detached === undefined) throw new HoldTokenError();
  return resume(ownBranch(detached.name), detached, checked);
}

function resume(branch: Branch, detached: DetachedHold, options: ResumeOptions): Promise<Hold> {
  const callSite = new CallSite(resume);
  return failAt(callSite, resumeAt(callSite, branch, detached, options));
}

async function resumeAt(
  callSite: CallSite,
  branch: Branch,
  { name, request: from }: DetachedHold,
  options: ResumeOptions,
): Promise<Hold> {
  const { scope } = branch;
  const { client, acquires, events, settings: defaults } = scope.runtime;
  assertTransferable(client.capabilities, name);
  const settings = acquireSettings(defaults, { ...options, ...termsOf(from) });
  assertGrantable(settings.leaseMs, client.capabilities);
  assertOpen(scope, name);
  const request = branch.requestFor(name, settings);
  const pending = { work: branch, request, settings };
  acquires.inFlight.begin();
  scope.holds.addPending(pending);
  try {
    const granted = await transfer(scope.runtime, name, from, request, settings.leaseMs);
    if (granted === undefined) throw new HoldTokenError(name);
    const hold = firstHold(branch, { name, request, settings, callSite }, granted);
    events.emit('resumed', { ...eventOf(hold.grant), fence: hold.grant.fence });
    try {
      // The request may have ended meanwhile.
      assertOpen(scope, name);
    } catch (error) {
      hold.startRelease();
      throw error;
    }
    return hold;
  } finally {
    scope.holds.removePending(pending);
    acquires.inFlight.end();
  }
}

/**
 * Passes a detached hold on to a hold of this process. Returns undefined if there is no such hold. Rejects with
 * `LockStoreError`; if the call may have taken effect, the new hold is released.
 */
async function transfer(
  { client, clock, releases }: Runtime,
  name: LockName,
  from: HoldRequest,
  to: HoldRequest,
  leaseMs: number,
): Promise<Granted | undefined> {
  const sent = clock.now();
  try {
    const terms = { leaseMs, tombstoneMs: releases.tombstoneMs(0) };
    const reply = await client.transfer(name, from, to, terms, { isHeld: false, sent });
    if (reply.status !== 'granted') return undefined;
    const granted = grantedByReply(reply, sent, clock.now(), leaseMs);
    if (granted !== undefined) return granted;
    throw grantedTooLate(name);
  } catch (error) {
    const isCertain = hasCode(error, 'ERR_LOCK_STORE') && error.outcome === 'not-applied';
    if (!isCertain) releases.releaseInBackground({ key: name.key, category: name.category, request: to, leaseMs });
    throw error;
  }
}

/** The options of an acquire for a hold like this. */
function termsOf({ mode, permits }: HoldRequest): Pick<AcquireOptions, 'mode' | 'permits'> {
  return mode === 'permit' ? { permits } : { mode };
}

function assertOpen(scope: Scope, name: LockName): void {
  const error = cancellationError(name, scope, undefined, false);
  if (error !== undefined) throw error;
  if (scope.runtime.acquires.isClosed) throw new LocksClosedError(name);
}
