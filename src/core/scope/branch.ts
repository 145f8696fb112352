import { LockLimitError } from '../model/errors/refusals.ts';
import type { LockName } from '../model/key.ts';
import type { AcquireSettings } from '../model/options.ts';
import { privateOwner } from '../model/owner.ts';
import type { HoldRequest } from '../model/store.ts';
import type { Reentrant } from '../model/types.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { ScopedController } from './scoped-controller.ts';

/** How deep branches may be nested, over all services. */
const maxDepth = 256;

/** What a branch needs of its scope. */
export interface BranchScope {
  readonly traceId: string;
  readonly owner: string;
  readonly requestOwner: string;
  readonly isBare: boolean;
  readonly route: string | undefined;
  readonly holds: { endBranch(branch: object): void; checkWaits(): void };
  readonly runtime: Runtime;
  nextSegment(): string;
  blockedOwners(branch: object): readonly string[];
}

/**
 * One line of work within a scope. The root is the request or job, and each `run` opens a branch within the branch that calls
 * it. A branch may enter what its ancestors hold. It excludes all other branches.
 */
export class BranchOf<S extends BranchScope> {
  readonly scope: S;
  /** The branch around it. For the root of a job within another scope, it belongs to that scope. */
  readonly parent: BranchOf<S> | undefined;
  /** How many branches of its scope are around it. */
  readonly #depth: number;
  #suffix: string | undefined;
  #isShared = false;

  constructor(scope: S, parent: BranchOf<S> | undefined) {
    this.scope = scope;
    this.parent = parent;
    const isRoot = parent?.scope !== scope;
    this.#depth = isRoot ? 0 : parent.#depth + 1;
    this.#suffix = isRoot ? '' : undefined;
  }

  /** Its path, for a service or a job that is called in it. From then on only the store knows the holds below it. */
  share(): string {
    for (let branch: BranchOf<S> | undefined = this; branch !== undefined; branch = branch.parent)
      branch.#isShared = true;
    return this.owner;
  }

  /**
   * Whether services or jobs were called in it or in a branch within it: they may hold keys below it, and only the store knows of
   * those.
   */
  get isShared(): boolean {
    return this.#isShared;
  }

  /** Opens a branch within this one. */
  open(): BranchOf<S> {
    return new BranchOf(this.scope, this);
  }

  /** Passes its remaining holds to the branch around it. Code that was not awaited may go on in it. */
  end(): void {
    this.scope.holds.endBranch(this);
  }

  /** Called when a grant that it acquired was lost: other branches no longer wait for that. */
  onLost(): void {
    this.scope.holds.checkWaits();
  }

  /** A new controller, for a signal whose listeners run in this branch. */
  createController(): ScopedController {
    return new ScopedController(this);
  }

  /** Whether it is another branch, or is nested in it. */
  isWithin(other: BranchOf<S>): boolean {
    for (let branch: BranchOf<S> | undefined = this; branch !== undefined; branch = branch.parent) {
      if (branch === other) return true;
    }
    return false;
  }

  get traceId(): string {
    return this.scope.traceId;
  }

  /** The route of its request, for people, if it is known. */
  get route(): string | undefined {
    return this.scope.route;
  }

  /** The owners whose work stands still while this branch waits, if others may wait for them. */
  get blockedOwners(): readonly string[] {
    return this.scope.blockedOwners(this);
  }

  /** Its path from the trace down: its name in stores and called services. */
  get owner(): string {
    return this.scope.owner + this.#path;
  }

  /** The owner of a hold of this branch. With `'request'` no other scope shares it, with `false` no other hold. */
  ownerAs(reentrant: Reentrant): string {
    if (reentrant === 'trace') return this.owner;
    if (reentrant === 'request') return this.scope.requestOwner + this.#path;
    return privateOwner(this.owner, this.scope.runtime.clock.randomId());
  }

  /** What a new hold of it asks the store for, with a random hold id. */
  requestFor({ id }: LockName, settings: AcquireSettings): HoldRequest {
    const { clock, process, settings: defaults } = this.scope.runtime;
    return {
      id,
      holdId: clock.randomId(),
      owner: this.ownerAs(settings.reentrant),
      process,
      claimMs: Math.min(defaults.claimMs, settings.leaseMs),
      mode: settings.mode,
      permits: settings.permits,
      priority: settings.priority,
    };
  }

  /**
   * A part of an owner, made on demand: most branches ask no store. To the store, all branches of a bare trace id are one owner,
   * since others may work under the same id: they exclude each other only within this scope.
   */
  get #path(): string {
    if (this.scope.isBare) return '';
    if (this.#suffix === undefined) {
      if (this.#depth >= maxDepth) {
        throw new LockLimitError(`Expected branches to be nested ${maxDepth} deep at most, got one more`, {});
      }
      this.#suffix = `${(this.parent as BranchOf<S>).#path}/${this.scope.nextSegment()}`;
    }
    return this.#suffix;
  }
}
