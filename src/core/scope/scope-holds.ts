import type { Deferred } from '../base/deferred.ts';
import type { Grant } from '../lease/grant.ts';
import type { LockLostError } from '../model/errors/failures.ts';
import type { LockKey, LockName } from '../model/key.ts';
import { isAncestor } from '../model/owner.ts';
import type { HoldRequest } from '../model/store.ts';
import type { Hold, HoldMode, Reentrant } from '../model/types.ts';
import type { BranchOf, BranchScope } from './branch.ts';

/** A scope as its holds see it. */
interface HoldingScope extends BranchScope {
  readonly holds: ScopeHolds;
  readonly root: Branch;
}

type Branch = BranchOf<HoldingScope>;

/** A hold as its scope sees it. */
export interface OwnedHold extends Hold {
  readonly grant: Grant;
  /** The branch that it belongs to. */
  readonly work: Branch;
  /** The mode that it was acquired in. Its grant may allow more. */
  readonly mode: HoldMode;
  /** Passes it to the branch around its own. */
  inherit(): void;
  /** The error of its loss, if it is lost and not released. */
  readonly loss: LockLostError | undefined;
  /** Releases it, for a caller that does not wait. */
  startRelease(): Deferred<void>;
}

/** What an acquire finds among the holds of its scope. */
export interface Entry {
  /** The grant of a branch around it that it may enter, or would join. A lost one comes first. */
  readonly grant: Grant | undefined;
  /** A branch that has the key, or asks for it, and that the store would not keep apart from this one: only this scope can. */
  readonly blocker: Branch | undefined;
  /** Whether another branch has the key, or asks for it, under another path: the store decides between the two. */
  readonly isAlongside: boolean;
}

/** What a branch wants. */
export interface Wanted {
  readonly id: string;
  readonly branch: Branch;
  readonly mode: HoldMode;
}

/** An acquire that waits for other branches of its scope. */
export interface BranchWait extends Wanted {
  /** The branch that waits: `branch`, or a branch of a job within it. */
  readonly from: Branch;
  /** Looks again whether it must wait. */
  check(): void;
}

/** An acquire that was sent to the store and has no result yet. */
interface PendingAcquire {
  readonly work: Branch;
  readonly request: Pick<HoldRequest, 'id' | 'owner' | 'mode'>;
  readonly settings: { readonly reentrant: Reentrant };
}

/** Whether two branches may not hold a key together under one grant. Each needs its own permit. */
function excludes(one: HoldMode, other: HoldMode): boolean {
  return one !== 'read' || other !== 'read';
}

/** Of the grants around a branch, the one with the highest rank counts. One that excludes it in the store comes first. */
function rankOf(grant: Grant, branch: Branch, mode: HoldMode): number {
  const isWrite = grant.request.mode === 'write';
  if (isWrite && grant.isLeft && grant.isLeftBeside(branch.ownerAs(grant.reentrant))) return 2;
  return grant.request.mode === mode ? 1 : 0;
}

/**
 * Whether the store keeps an owner waiting until a grant is released that an ended branch has left: it is to write, and neither
 * owner is an ancestor of the other. The acquire of an ancestor may have been granted before.
 */
function isKeptOut(owner: string, left: Grant | undefined): boolean {
  return left?.isLeftBeside(owner) === true && left.request.mode === 'write' && !isAncestor(owner, left.request.owner);
}

const none: readonly never[] = [];

/** The holds of the branches of one scope, and their acquires in flight. */
export class ScopeHolds {
  /** In the order of their acquires. */
  readonly #holds: OwnedHold[] = [];
  #pending: PendingAcquire[] | undefined;
  /** The holds of jobs that run within branches of the scope. Most scopes have none. */
  #within: Set<ScopeHolds> | undefined;
  /** First in, first out. Most scopes never have one. */
  #waits: Set<BranchWait> | undefined;

  get all(): readonly OwnedHold[] {
    return this.#holds;
  }

  /** The owners of the holds that stay held while a branch waits: its own, and those of branches that wait for it. */
  blockedOwners(branch: Branch): readonly string[] {
    const owners: string[] = [];
    for (const blocked of blockedBy(branch)) {
      for (let around: Branch | undefined = blocked; around !== undefined; around = around.scope.root.parent) {
        for (const { grant, work: holder } of around.scope.holds.#holds) {
          if (grant.reentrant !== false && grant.isOpen && blocked.isWithin(holder)) owners.push(grant.request.owner);
        }
      }
    }
    return owners;
  }

  /** Whether `from` would wait for itself: a branch that has the wanted key waits for it, directly or through others. */
  isCycle(wanted: Wanted, from: Branch): boolean {
    const holders = this.#otherHolders(wanted);
    if (holders.length === 0) return false;
    const others = [...blockedBy(from)].slice(1);
    return holders.some((holder) => others.some((blocked) => blocked.isWithin(holder)));
  }

  /** Calls `check` of a wait whenever the scope has fewer holds or loses one, until the returned function is called. */
  wait(wait: BranchWait): () => void {
    this.#waits ??= new Set();
    this.#waits.add(wait);
    return () => this.#waits?.delete(wait);
  }

  /** The branches of this scope, and of jobs within, that wait for a hold of a branch, or may do so in the store. */
  waitersFor(branch: Branch): Branch[] {
    if (!this.#mayBlock(branch)) return [];
    const waiters: Branch[] = [];
    const isFor = (wait: Wanted): boolean => this.#otherHolders(wait).some((holder) => branch.isWithin(holder));
    for (const wait of this.#waits ?? []) if (isFor(wait)) waiters.push(wait.from);
    for (const { work, request } of this.#pending ?? none) {
      if (isFor({ id: request.id, branch: work, mode: request.mode })) waiters.push(work);
    }
    for (const job of this.#within ?? none) waiters.push(...job.waitersFor(branch));
    return waiters;
  }

  /** How many holds on a lock are neither released nor lost, of a branch and of those around it. */
  holdCount(id: string, branch: Branch): number {
    let count = 0;
    for (const hold of this.#holds) {
      if (hold.grant.request.id === id && branch.isWithin(hold.work) && hold.isHeld()) count += 1;
    }
    return count;
  }

  /** The newest hold on a lock, of a branch or of those around it. */
  newestHold(id: string, branch: Branch): OwnedHold | undefined {
    return this.#holds.findLast((hold) => hold.grant.request.id === id && branch.isWithin(hold.work));
  }

  /** The name of this key, if the newest hold is on it. */
  newestName(key: LockKey, category: string | undefined): LockName | undefined {
    const name = this.#holds.at(-1)?.grant.name;
    return name !== undefined && name.key === key && name.category === category ? name : undefined;
  }

  /**
   * What an acquire by a branch finds in this scope. Holds that are not reentrant do not count. `from` is the branch that asks, if
   * it is of a job within `branch`.
   */
  entry(id: string, branch: Branch, mode: HoldMode, from: Branch = branch): Entry {
    let found: Grant | undefined;
    let blocker: Branch | undefined;
    let isAlongside = false;
    const meet = (
      other: Pick<OwnedHold, 'work' | 'mode'>,
      owner: string,
      reentrant: Reentrant,
      grant?: Grant,
    ): void => {
      if (!excludes(other.mode, mode)) return;
      // The store knows branches by their paths, and admits this one alongside its ancestors' grants. For a while, it may know
      // an inherited grant under the path of the branch that has ended.
      const isAncestors = isAncestor(owner, branch.ownerAs(reentrant)) || (grant && this.#isAround(branch, grant));
      if (isAncestors) blocker ??= other.work;
      else isAlongside = true;
    };
    for (const hold of this.#holds) {
      const { grant } = hold;
      if (grant.request.id !== id || grant.reentrant === false) continue;
      if (branch.isWithin(hold.work)) {
        // Nothing may be built on a lost grant, until its holds are released.
        if (grant.lostError !== undefined) return { grant, blocker: undefined, isAlongside: false };
        if (found !== grant && (found === undefined || rankOf(grant, branch, mode) > rankOf(found, branch, mode)))
          found = grant;
      } else if (grant.lostError === undefined) meet(hold, grant.request.owner, grant.reentrant, grant);
    }
    for (const { work, request, settings } of this.#pending ?? none) {
      // What a branch within the asking one asks for may be granted after this.
      const isOther = request.id === id && !branch.isWithin(work) && !work.isWithin(from);
      if (isOther && !isKeptOut(request.owner, found))
        meet({ work, mode: request.mode }, request.owner, settings.reentrant);
    }
    return { grant: found, blocker, isAlongside: isAlongside || this.#isWantedWithin(id, mode, found) };
  }

  /** How many other holds and acquires of the scope the store may count as equals: under one owner, no readers beside a reader. */
  countAlongside(own: HoldRequest): number {
    const others = new Set([...this.#holds.map(({ grant }) => grant), ...(this.#pending ?? none)]);
    const isSame = ({ request }: Pick<PendingAcquire, 'request'>): boolean =>
      request !== own && request.id === own.id && request.owner === own.owner && excludes(request.mode, own.mode);
    return [...others].filter(isSame).length;
  }

  /** Adds the holds of a job within a branch of the scope, until the returned function is called. */
  addWithin(job: ScopeHolds): () => void {
    this.#within ??= new Set();
    this.#within.add(job);
    return () => {
      this.#within?.delete(job);
      this.checkWaits();
    };
  }

  /** Adds an acquire that is sent to the store, until `removePending`. One that is not reentrant does not concern the others. */
  addPending(asking: PendingAcquire): void {
    if (asking.settings.reentrant === false) return;
    if (this.#pending === undefined) this.#pending = [asking];
    else this.#pending.push(asking);
  }

  removePending(asking: PendingAcquire): void {
    const at = this.#pending?.indexOf(asking) ?? -1;
    if (at < 0) return;
    this.#pending?.splice(at, 1);
    this.checkWaits();
  }

  /** Passes the holds of a branch that has ended to the branch around it. */
  endBranch(branch: Branch): void {
    for (const hold of this.#holds) if (hold.work === branch) hold.inherit();
    this.checkWaits();
  }

  add(hold: OwnedHold): void {
    this.#holds.push(hold);
  }

  /** Removes a hold. Call `checkWaits` once its release was sent to the store. */
  forget(hold: OwnedHold): void {
    const at = this.#holds.lastIndexOf(hold);
    // Mostly the newest: `splice` would allocate an array.
    if (at === this.#holds.length - 1) this.#holds.pop();
    else if (at >= 0) this.#holds.splice(at, 1);
  }

  /** Whether a branch around this one has a hold of a grant. */
  #isAround(branch: Branch, grant: Grant): boolean {
    return this.#holds.some((hold) => hold.grant === grant && branch.isWithin(hold.work));
  }

  /** Whether a job within the scope has a lock, or asks for it. None of its holds belongs to an ancestor of a branch here. */
  #isWantedWithin(id: string, mode: HoldMode, found: Grant | undefined): boolean {
    const isAsking = ({ request }: PendingAcquire): boolean =>
      request.id === id && excludes(request.mode, mode) && !isKeptOut(request.owner, found);
    for (const job of this.#within ?? none) {
      const holds = job.#holds.some((hold) => hold.grant.request.id === id && excludes(hold.mode, mode));
      if (holds || job.#pending?.some(isAsking)) return true;
      if (job.#isWantedWithin(id, mode, found)) return true;
    }
    return false;
  }

  /** Lets the acquires that wait for other branches look again. */
  checkWaits(): void {
    if (this.#waits !== undefined) for (const wait of [...this.#waits]) wait.check();
  }

  /** Whether others may wait for a hold of a branch: what the outermost root has keeps nobody out. Most branches that wait have none. */
  #mayBlock(branch: Branch): boolean {
    if (this.#holds.some(({ work }) => work.parent !== undefined && branch.isWithin(work))) return true;
    return this.#within !== undefined && [...this.#within].some((job) => job.#mayBlock(branch));
  }

  /** The other branches of this scope, and of jobs within, that have what a branch wants. */
  #otherHolders(wanted: Wanted): Branch[] {
    const { id, branch, mode } = wanted;
    const others: Branch[] = [];
    for (const { grant, mode: held, work } of this.#holds) {
      const isLasting = grant.request.id === id && grant.reentrant !== false && grant.lostError === undefined;
      if (isLasting && excludes(held, mode) && !branch.isWithin(work)) others.push(work);
    }
    for (const job of this.#within ?? none) others.push(...job.#otherHolders(wanted));
    return others;
  }
}

/** The branches that are blocked together with one: itself first, those that wait for it or for one around it, and so on. */
function blockedBy(branch: Branch): ReadonlySet<Branch> {
  let { scope } = branch;
  for (let { parent } = scope.root; parent !== undefined; parent = scope.root.parent) scope = parent.scope;
  const blocked = new Set([branch]);
  // Iterating a set includes the items that are added meanwhile.
  for (const each of blocked) for (const waiter of scope.holds.waitersFor(each)) blocked.add(waiter);
  return blocked;
}
