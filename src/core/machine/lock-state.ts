import type { AcquireTerms, HoldRequest, StoreGrant } from '../model/store.ts';
import { Holds, type MemoryHold } from './holds.ts';
import { type MemoryProcess, MemoryQueue, type MemoryWaiter } from './queue.ts';

/** What one call on a lock needs from its surroundings. */
export interface LockContext {
  readonly nowMs: number;
  /** The calling process. Its grants are in the reply, so it gets no message about them. */
  readonly caller: string | undefined;
  /** Greater than every fence before, and at least `least` (C24). */
  nextFence(least?: number): number;
  isReachable(process: string): boolean;
}

/** The whole state of a lock as plain values, for a store that keeps its locks elsewhere. */
export interface LockImage {
  readonly holds: readonly MemoryHold[];
  readonly queue: readonly MemoryWaiter[];
  readonly processes: readonly (readonly [name: string, process: MemoryProcess])[];
}

/** The result of a hand-off. */
export interface HandOff {
  readonly granted: readonly MemoryHold[];
  /** A live waiter that is left: nobody but a holder's owner may enter before it. */
  readonly next: HoldRequest | undefined;
  /** Whether the holds admit that waiter: it has its turn with the next call. */
  readonly isUnfinished: boolean;
}

/** One hand-off grants about so many readers of a row, so that no call takes long. */
const maxGranted = 256;
/** A reply names so many claims of other calls. */
const maxClaims = 64;

const noClaims: readonly StoreGrant[] = [];

/** What comes of a call that hands nothing off. */
export const noHandOff: HandOff = { granted: [], next: undefined, isUnfinished: false };

/** One lock: its holds, and its queue while there are waiters. */
export class MemoryLock {
  readonly holds: Holds = new Holds();
  #queue: MemoryQueue | undefined;

  /** Makes a lock from its image. The image must not be used after that. */
  static of(image: LockImage): MemoryLock {
    const lock = new MemoryLock();
    for (const hold of image.holds) lock.holds.add(hold);
    if (image.queue.length === 0) return lock;
    lock.#queue = new MemoryQueue();
    for (const waiter of image.queue) lock.#queue.add(waiter);
    for (const [name, process] of image.processes) lock.#queue.processes.set(name, process);
    return lock;
  }

  /** The state of the lock, without processes that have no waiters. Its parts belong to the lock: do not change them. */
  get image(): LockImage {
    const queue = [...this.waiters];
    const waiting = new Set(queue.map(({ request }) => request.process));
    const processes = [...(this.#queue?.processes ?? [])].filter(([name]) => waiting.has(name));
    return { holds: this.holds.all, queue, processes };
  }

  /** Who waits, in order. */
  get waiters(): Iterable<MemoryWaiter> {
    return this.#queue?.waiters ?? [];
  }

  get queueSize(): number {
    return this.#queue?.size ?? 0;
  }

  get isUnused(): boolean {
    return this.holds.size === 0 && this.#queue === undefined;
  }

  /** The fence of all present holds; undefined if there are none. */
  get fence(): number | undefined {
    return this.holds.oldest?.fence;
  }

  /** The permits that all holds and waiters have; undefined if there are none. */
  get permits(): number | undefined {
    return (this.holds.oldest ?? this.#queue?.at(0))?.request.permits;
  }

  waiter(holdId: string): MemoryWaiter | undefined {
    return this.#queue?.get(holdId);
  }

  /** How many waiters are before a hold id; all if it does not wait. */
  positionOf(holdId: string): number {
    return this.#queue?.positionOf(holdId) ?? 0;
  }

  dropExpired(nowMs: number): void {
    for (const hold of this.holds.takeEnded(nowMs)) {
      if (hold.isClaim) this.#queue?.suspend(hold.request.process);
    }
  }

  /** Records that the process of a waiter has polled. */
  markLive(process: string, untilMs: number): void {
    this.#queue?.markLive(process, untilMs);
  }

  /** Returns how many waiters are before it. */
  enqueue(request: HoldRequest, terms: AcquireTerms, nowMs: number): number {
    this.#queue ??= new MemoryQueue();
    this.#queue.markLive(request.process, nowMs + terms.livenessMs);
    return this.#queue.add({ request, sinceMs: nowMs });
  }

  dequeue(holdId: string): boolean {
    const wasThere = this.#queue?.remove(holdId) === true;
    if (this.#queue?.size === 0) this.#queue = undefined;
    return wasThere;
  }

  /** Adds a hold that the present holds admit. A new fence is at least `least`. */
  grant(request: HoldRequest, endMs: number, isClaim: boolean, context: LockContext, least?: number): MemoryHold {
    const isRaised = request.mode === 'permit';
    const hold = { request, fence: this.#fenceFor(request, context, least), endMs, isClaim, isRaised };
    this.holds.add(hold);
    return hold;
  }

  /**
   * Grants claims to the first live waiter, if the holds admit it, and to every other waiter of its owner; after one that
   * shares the lock, goes on until one that the holds do not admit, or until many were granted.
   */
  handOff(context: LockContext): HandOff {
    if (this.#queue === undefined) return noHandOff;
    const granted: MemoryHold[] = [];
    const paid: MemoryProcess[] = [];
    let next = this.#nextLive(context);
    while (next !== undefined && granted.length < maxGranted && this.holds.admits(next)) {
      const process = this.#queue.processes.get(next.process);
      if (process?.state === 'owed') paid.push(process);
      for (const request of [next, ...this.#queue.besides(next)]) {
        if (!this.holds.admits(request)) continue;
        this.dequeue(request.holdId);
        granted.push(this.grant(request, context.nowMs + request.claimMs, true, context));
      }
      const isWriter = next.mode === 'write';
      next = isWriter ? next : this.#nextLive(context);
      if (isWriter) break;
    }
    for (const process of paid) process.state = 'live';
    const isLeft = next !== undefined && this.waiter(next.holdId) !== undefined && this.holds.admits(next);
    return { granted, next, isUnfinished: isLeft };
  }

  /**
   * The open claims of the calling process, but for the one that the reply is about: all that were `granted` by this call,
   * and of the others those that lapse first.
   */
  claimsOf(process: string, exceptHoldId: string, granted: readonly MemoryHold[]): readonly StoreGrant[] {
    if (!this.holds.hasClaims) return noClaims;
    const claims = new Set(granted.filter((hold) => hold.request.process === process && hold.isClaim));
    const most = claims.size + maxClaims;
    for (const hold of this.holds.claimsOf(process)) {
      if (claims.size === most) break;
      claims.add(hold);
    }
    return [...claims].filter(({ request }) => request.holdId !== exceptHoldId).map(asGrant);
  }

  /**
   * The fence for the next hold: the last one; or a new one if there are no holds, if a writer joins readers, or if another
   * owner gets a permit.
   */
  #fenceFor({ mode, owner }: HoldRequest, context: LockContext, least?: number): number {
    const { fence, holds } = this;
    const joins = mode === 'permit' ? holds.countOf(owner) > 0 : mode === 'read' || holds.hasWriter;
    if (fence !== undefined && joins) return fence;
    const next = context.nextFence(least);
    if (fence === undefined) return next;
    for (const hold of holds.all) {
      hold.fence = next;
      hold.isRaised = true;
    }
    return next;
  }

  #nextLive(context: LockContext): HoldRequest | undefined {
    let passed = 0;
    for (let waiter = this.#queue?.at(0); waiter !== undefined; waiter = this.#queue?.at(passed)) {
      const { request } = waiter;
      const process = this.#queue?.processes.get(request.process);
      if (process === undefined || process.liveUntilMs <= context.nowMs) {
        this.dequeue(request.holdId);
        continue;
      }
      if (request.process === context.caller || process.state === 'owed') return request;
      if (process.state === 'live') {
        if (context.isReachable(request.process)) return request;
        process.state = 'suspended';
      }
      passed += 1;
    }
    return undefined;
  }
}

/** A hold, as replies and messages contain it. */
export function asGrant(hold: MemoryHold): StoreGrant {
  return { holdId: hold.request.holdId, fence: hold.fence, endMs: hold.endMs, isClaim: hold.isClaim };
}
