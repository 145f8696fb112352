import type { Deferred } from '../base/deferred.ts';
import type { Grant } from '../lease/grant.ts';
import type { LockLostError } from '../model/errors.ts';
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
  /** What it was acquired for, in a grant that may be for more. */
  readonly mode: HoldMode;
  /** Lets it belong to the branch around its own. */
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
  /** A branch that has the key, or asks for it, by what the store would let this one in beside: only this scope knows of it. */
  readonly blocker: Branch | undefined;
  /** Whether another branch has the key, or asks for it, under a path of its own: the store decides between both. */
  readonly isBeside: boolean;
}

/** What a branch wants. */
export interface Wanted {
  readonly id: string;
  readonly branch: Branch;
  readonly mode: HoldMode;
}

/** An acquire that waits for other branches of its scope. */
export interface BranchWait extends Wanted {
  /** The branch that waits, if that is one of a job within `branch`. */
  readonly from: Branch;
  /** Looks again whether it must wait. */
  check(): void;
}

/** An acquire that the store was asked for. */
interface Asking {
  readonly work: Branch;
  readonly request: Pick<HoldRequest, 'id' | 'owner' | 'mode'>;
  readonly settings: { readonly reentrant: Reentrant };
}

/** Whether two branches may not hold a key together. Each takes a permit of its own. */
function excludes(one: HoldMode, other: HoldMode): boolean {
  return one !== 'read' || other !== 'read';
}

const none: readonly never[] = [];

/** What the branches of one scope hold, and what they ask the store for. */
export class ScopeHolds {
  /** In the order of their acquires. */
  readonly #holds: OwnedHold[] = [];
  #asking: Asking[] | undefined;
  /** Of the jobs of this process that run within branches of the scope. Most scopes have none. */
  #within: Set<ScopeHolds> | undefined;
  /** First in, first out. Most scopes never have one. */
  #waits: Set<BranchWait> | undefined;

  get all(): readonly OwnedHold[] {
    return this.#holds;
  }

  /** The owners of what is held by branches that stand still while a branch waits: that one, and those that wait for it. */
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

  /** Whether `from` would wait for itself: a branch that has what it wants waits for it, or for another that does. */
  isCycle(wanted: Wanted, from: Branch): boolean {
    const holders = this.#holdersBeside(wanted);
    if (holders.length === 0) return false;
    const others = [...blockedBy(from)].slice(1);
    return holders.some((holder) => others.some((blocked) => blocked.isWithin(holder)));
  }

  /** Calls `check` of a wait whenever the scope has fewer holds, until the returned function is called. */
  wait(wait: BranchWait): () => void {
    this.#waits ??= new Set();
    this.#waits.add(wait);
    return () => this.#waits?.delete(wait);
  }

  /** The branches of this scope, and of jobs within, that wait for a hold of a branch, or may do so in the store. */
  waitersFor(branch: Branch): Branch[] {
    const waiters: Branch[] = [];
    const isFor = (wait: Wanted): boolean => this.#holdersBeside(wait).some((holder) => branch.isWithin(holder));
    for (const wait of this.#waits ?? []) if (isFor(wait)) waiters.push(wait.from);
    for (const { work, request } of this.#asking ?? none) {
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

  /** What an acquire by a branch finds in this scope. A hold that is not reentrant is nothing to it. */
  entry(id: string, branch: Branch, mode: HoldMode): Entry {
    let found: Grant | undefined;
    let blocker: Branch | undefined;
    let isBeside = false;
    const meet = (
      other: Pick<OwnedHold, 'work' | 'mode'>,
      owner: string,
      reentrant: Reentrant,
      grant?: Grant,
    ): void => {
      if (!excludes(other.mode, mode)) return;
      // The store tells branches apart by their paths: it would let this one in beside what an ancestor's is granted. It may
      // know a grant that a branch around this one has inherited under the path of the branch that has ended, for a while.
      const isAncestors = isAncestor(owner, branch.ownerAs(reentrant)) || (grant && this.#isAround(branch, grant));
      if (isAncestors) blocker ??= other.work;
      else isBeside = true;
    };
    for (const hold of this.#holds) {
      const { grant } = hold;
      if (grant.request.id !== id || grant.reentrant === false) continue;
      if (branch.isWithin(hold.work)) {
        // Nothing may be built on a lost grant, until its holds are released.
        if (grant.lostError !== undefined) return { grant, blocker: undefined, isBeside: false };
        if (found === undefined || (found.request.mode !== mode && grant.request.mode === mode)) found = grant;
      } else if (grant.lostError === undefined) meet(hold, grant.request.owner, grant.reentrant, grant);
    }
    for (const { work, request, settings } of this.#asking ?? none) {
      if (request.id === id && !branch.isWithin(work))
        meet({ work, mode: request.mode }, request.owner, settings.reentrant);
    }
    return { grant: found, blocker, isBeside: isBeside || this.#isWantedWithin(id, mode) };
  }

  /** How many others of the scope the store has, or may have, on a lock under the owner of one that it was asked for. */
  countBeside(asked: HoldRequest): number {
    const others = new Set([...this.#holds.map(({ grant }) => grant), ...(this.#asking ?? none)]);
    const isBeside = ({ request }: Pick<Asking, 'request'>): boolean =>
      request !== asked && request.id === asked.id && request.owner === asked.owner;
    return [...others].filter(isBeside).length;
  }

  /** Says that a job runs within a branch of the scope, until the returned function is called. */
  addWithin(job: ScopeHolds): () => void {
    this.#within ??= new Set();
    this.#within.add(job);
    return () => {
      this.#within?.delete(job);
      this.#checkWaits();
    };
  }

  /** Says that the store is asked for a lock, until `answered` is called. An acquire that is not reentrant is nothing to others. */
  ask(asking: Asking): void {
    if (asking.settings.reentrant === false) return;
    if (this.#asking === undefined) this.#asking = [asking];
    else this.#asking.push(asking);
  }

  answered(asking: Asking): void {
    const at = this.#asking?.indexOf(asking) ?? -1;
    if (at < 0) return;
    this.#asking?.splice(at, 1);
    this.#checkWaits();
  }

  /** A branch has ended: what it holds belongs to the branch around it. */
  endBranch(branch: Branch): void {
    for (const hold of this.#holds) if (hold.work === branch) hold.inherit();
    this.#checkWaits();
  }

  add(hold: OwnedHold): void {
    this.#holds.push(hold);
  }

  forget(hold: OwnedHold): void {
    const at = this.#holds.lastIndexOf(hold);
    // Mostly the newest: `splice` would make an array of it.
    if (at === this.#holds.length - 1) this.#holds.pop();
    else if (at >= 0) this.#holds.splice(at, 1);
    this.#checkWaits();
  }

  /** Whether a branch around this one has a hold of a grant. */
  #isAround(branch: Branch, grant: Grant): boolean {
    return this.#holds.some((hold) => hold.grant === grant && branch.isWithin(hold.work));
  }

  /** Whether a job within the scope has a lock, or asks for it: none of its holds is that of an ancestor here. */
  #isWantedWithin(id: string, mode: HoldMode): boolean {
    for (const job of this.#within ?? none) {
      const holds = job.#holds.some((hold) => hold.grant.request.id === id && excludes(hold.mode, mode));
      const isAsked = job.#asking?.some(({ request }) => request.id === id && excludes(request.mode, mode));
      if (holds || isAsked) return true;
      if (job.#isWantedWithin(id, mode)) return true;
    }
    return false;
  }

  #checkWaits(): void {
    if (this.#waits !== undefined) for (const wait of [...this.#waits]) wait.check();
  }

  /** The other branches of this scope, and of jobs within, that have what a branch wants. */
  #holdersBeside({ id, branch, mode }: Wanted): Branch[] {
    const within = [...(this.#within ?? none)].flatMap((job) => job.#holdersBeside({ id, branch, mode }));
    const beside = this.#holds.filter(
      (hold) =>
        hold.grant.request.id === id &&
        hold.grant.reentrant !== false &&
        hold.grant.lostError === undefined &&
        excludes(hold.mode, mode) &&
        !branch.isWithin(hold.work),
    );
    return [...beside.map((hold) => hold.work), ...within];
  }
}

/** The branches that stand still while a branch does: that one first, those that wait for it or for one around it, and so on. */
function blockedBy(branch: Branch): ReadonlySet<Branch> {
  let { scope } = branch;
  for (let { parent } = scope.root; parent !== undefined; parent = scope.root.parent) scope = parent.scope;
  const blocked = new Set([branch]);
  // A set goes through what is added meanwhile, too.
  for (const each of blocked) for (const waiter of scope.holds.waitersFor(each)) blocked.add(waiter);
  return blocked;
}
