import type { AcquireTerms, HoldRequest, StoreGrant } from '../../model/store.ts';
import type { LockMode } from '../../model/types.ts';
import { type MemoryProcess, MemoryQueue, type MemoryWaiter } from './queue.ts';

/** A hold in memory. */
export interface MemoryHold {
  readonly request: HoldRequest;
  fence: number;
  endMs: number;
  isClaim: boolean;
  /** Whether its fence rose after it was granted: it may be renewed with the fence that it got. */
  isRaised: boolean;
}

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
interface HandOff {
  readonly granted: readonly MemoryHold[];
  /** Whether a live waiter is left that the holds do not admit: then only the owner of a hold may enter. */
  readonly isBlocked: boolean;
}

const nothing: HandOff = { granted: [], isBlocked: false };
const nobody: ReadonlyMap<string, MemoryWaiter> = new Map();

/** One lock: its holds, and its queue while there are waiters. */
export class MemoryLock {
  readonly holds: Map<string, MemoryHold> = new Map();
  #queue: MemoryQueue | undefined;

  /** Makes a lock from its image. The image must not be used after that. */
  static of(image: LockImage): MemoryLock {
    const lock = new MemoryLock();
    for (const hold of image.holds) lock.holds.set(hold.request.holdId, hold);
    if (image.queue.length === 0) return lock;
    lock.#queue = new MemoryQueue();
    for (const waiter of image.queue) lock.#queue.add(waiter);
    for (const [name, process] of image.processes) lock.#queue.processes.set(name, process);
    return lock;
  }

  /** The state of the lock, without processes that have no waiters. Its parts belong to the lock: do not change them. */
  get image(): LockImage {
    const queue = [...this.queue.values()];
    const waiting = new Set(queue.map(({ request }) => request.process));
    const processes = [...(this.#queue?.processes ?? [])].filter(([name]) => waiting.has(name));
    return { holds: [...this.holds.values()], queue, processes };
  }

  /** The waiters in order, by hold id. */
  get queue(): ReadonlyMap<string, MemoryWaiter> {
    return this.#queue?.waiters ?? nobody;
  }

  get isUnused(): boolean {
    return this.holds.size === 0 && this.#queue === undefined;
  }

  /** The fence of all present holds; undefined if there are none. */
  get fence(): number | undefined {
    return this.holds.values().next().value?.fence;
  }

  get hasWriter(): boolean {
    for (const { request } of this.holds.values()) if (request.mode === 'write') return true;
    return false;
  }

  /** Whether the present holds admit one more of this owner and mode. Different owners share only as readers. */
  admits(owner: string, mode: LockMode): boolean {
    for (const { request } of this.holds.values()) {
      if (request.owner !== owner && (mode === 'write' || request.mode === 'write')) return false;
    }
    return true;
  }

  holdsOf(owner: string): number {
    let count = 0;
    for (const { request } of this.holds.values()) if (request.owner === owner) count += 1;
    return count;
  }

  leaseRemainingMs(nowMs: number): number {
    let lastMs = nowMs;
    for (const hold of this.holds.values()) lastMs = Math.max(lastMs, hold.endMs);
    return lastMs - nowMs;
  }

  dropExpired(nowMs: number): void {
    for (const [holdId, hold] of this.holds) {
      if (hold.endMs > nowMs) continue;
      this.holds.delete(holdId);
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
    if (this.#queue?.waiters.size === 0) this.#queue = undefined;
    return wasThere;
  }

  /** Adds a hold that the present holds admit. A new fence is at least `least`. */
  grant(request: HoldRequest, endMs: number, isClaim: boolean, context: LockContext, least?: number): MemoryHold {
    const hold = { request, fence: this.#fenceFor(request.mode, context, least), endMs, isClaim, isRaised: false };
    this.holds.set(request.holdId, hold);
    return hold;
  }

  /**
   * Grants claims to the first live waiter, if the holds admit it, and to every other waiter of its owner; after a reader,
   * goes on until the next writer.
   */
  handOff(context: LockContext): HandOff {
    if (this.#queue === undefined) return nothing;
    const granted: MemoryHold[] = [];
    const paid: MemoryProcess[] = [];
    let next = this.#nextLive(context);
    while (next !== undefined && this.admits(next.owner, next.mode)) {
      const process = this.#queue.processes.get(next.process);
      if (process?.state === 'owed') paid.push(process);
      for (const request of [next, ...this.#queue.besides(next)]) {
        if (!this.admits(request.owner, request.mode)) continue;
        this.dequeue(request.holdId);
        granted.push(this.grant(request, context.nowMs + request.claimMs, true, context));
      }
      if (next.mode === 'write') break;
      next = this.#nextLive(context);
    }
    for (const process of paid) process.state = 'live';
    return { granted, isBlocked: next !== undefined };
  }

  /** The claims of the calling process, except for the one that the reply is about. */
  claimsOf(process: string, exceptHoldId: string): readonly StoreGrant[] {
    const claims: StoreGrant[] = [];
    for (const hold of this.holds.values()) {
      if (hold.isClaim && hold.request.process === process && hold.request.holdId !== exceptHoldId)
        claims.push(asGrant(hold));
    }
    return claims;
  }

  /** The fence for the next hold: the last one, or a new one if there are no holds or if a writer joins readers. */
  #fenceFor(mode: LockMode, context: LockContext, least?: number): number {
    const { fence } = this;
    if (fence !== undefined && (mode === 'read' || this.hasWriter)) return fence;
    const next = context.nextFence(least);
    for (const hold of this.holds.values()) {
      hold.fence = next;
      hold.isRaised = true;
    }
    return next;
  }

  #nextLive(context: LockContext): HoldRequest | undefined {
    for (const { request } of this.queue.values()) {
      const process = this.#queue?.processes.get(request.process);
      if (process === undefined || process.liveUntilMs <= context.nowMs) {
        this.dequeue(request.holdId);
      } else if (request.process === context.caller || process.state === 'owed') {
        return request;
      } else if (process.state === 'live') {
        if (context.isReachable(request.process)) return request;
        process.state = 'suspended';
      }
    }
    return undefined;
  }
}

/** A hold, as replies and messages contain it. */
export function asGrant(hold: MemoryHold): StoreGrant {
  return { holdId: hold.request.holdId, fence: hold.fence, endMs: hold.endMs, isClaim: hold.isClaim };
}
