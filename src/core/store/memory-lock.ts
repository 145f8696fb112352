import type { AcquireTerms, HoldRequest, StoreGrant } from './store.ts';

/** A hold in memory. */
export interface MemoryHold {
  readonly request: HoldRequest;
  fence: number;
  endMs: number;
  isClaim: boolean;
}

interface MemoryWaiter {
  readonly request: HoldRequest;
  readonly sinceMs: number;
}

interface MemoryProcess {
  liveUntilMs: number;
  /** `suspended`: passed over until it polls. `owed`: it polled since, and is granted the next time without being asked for. */
  state: 'live' | 'suspended' | 'owed';
}

/** What one call on a lock needs from its surroundings. */
export interface LockContext {
  readonly nowMs: number;
  /** The process that calls: it hears of its grants in the reply. */
  readonly caller: string | undefined;
  nextFence(): number;
  isReachable(process: string): boolean;
}

/** All that a lock consists of, in order, as plain values: what a store writes down that keeps its locks elsewhere. */
export interface LockImage {
  readonly holds: readonly MemoryHold[];
  readonly queue: readonly MemoryWaiter[];
  readonly processes: readonly (readonly [name: string, process: MemoryProcess])[];
}

/** One lock: its holds, its queue and the processes that wait in it. */
export class MemoryLock {
  readonly holds: Map<string, MemoryHold> = new Map();
  readonly queue: Map<string, MemoryWaiter> = new Map();
  readonly #processes = new Map<string, MemoryProcess>();
  /** How many waiters an owner has: the queue is only searched for more of them where there are any. */
  readonly #waitersOf = new Map<string, number>();

  /** The lock of which this is the image; the image must not be used any more. */
  static of(image: LockImage): MemoryLock {
    const lock = new MemoryLock();
    for (const hold of image.holds) lock.holds.set(hold.request.holdId, hold);
    for (const waiter of image.queue) lock.#push(waiter);
    for (const [name, process] of image.processes) lock.#processes.set(name, process);
    return lock;
  }

  /** Without the processes that wait no more. Nothing that belongs to the lock may be changed through it. */
  get image(): LockImage {
    const queue = [...this.queue.values()];
    const waiting = new Set(queue.map(({ request }) => request.process));
    const processes = [...this.#processes].filter(([name]) => waiting.has(name));
    return { holds: [...this.holds.values()], queue, processes };
  }

  get isUnused(): boolean {
    return this.holds.size === 0 && this.queue.size === 0;
  }

  /** The holder's fence and owner come from any of its holds: in write mode all have the same. */
  get holder(): MemoryHold | undefined {
    return this.holds.values().next().value;
  }

  freeInMs(nowMs: number): number {
    let lastMs = nowMs;
    for (const hold of this.holds.values()) lastMs = Math.max(lastMs, hold.endMs);
    return lastMs - nowMs;
  }

  dropExpired(nowMs: number): void {
    for (const [holdId, hold] of this.holds) {
      if (hold.endMs > nowMs) continue;
      this.holds.delete(holdId);
      if (hold.isClaim) this.#suspend(hold.request.process);
    }
  }

  markLive(process: string, untilMs: number): void {
    const known = this.#processes.get(process);
    const state = known === undefined || known.state === 'live' ? 'live' : 'owed';
    this.#processes.set(process, { liveUntilMs: Math.max(untilMs, known?.liveUntilMs ?? 0), state });
  }

  enqueue(request: HoldRequest, terms: AcquireTerms, nowMs: number): void {
    this.#push({ request, sinceMs: nowMs });
    this.markLive(request.process, nowMs + terms.livenessMs);
  }

  dequeue(holdId: string): boolean {
    const waiter = this.queue.get(holdId);
    if (waiter === undefined) return false;
    this.queue.delete(holdId);
    const { owner } = waiter.request;
    const others = (this.#waitersOf.get(owner) ?? 1) - 1;
    if (others === 0) this.#waitersOf.delete(owner);
    else this.#waitersOf.set(owner, others);
    if (this.queue.size === 0) this.#processes.clear();
    return true;
  }

  /** Grants without a queue: a free key, or re-entry. */
  grant(request: HoldRequest, endMs: number, fence: number, isClaim: boolean): MemoryHold {
    const hold = { request, fence, endMs, isClaim };
    this.holds.set(request.holdId, hold);
    return hold;
  }

  /** Makes the first live waiter the holder, with every other waiter of its owner; answers whom it granted. */
  handOff(context: LockContext): readonly MemoryHold[] {
    const next = this.#nextLive(context);
    if (next === undefined) return [];
    const fence = context.nextFence();
    const isAlone = this.#waitersOf.get(next.owner) === 1;
    const chosen = isAlone ? [next] : [next, ...this.#othersWithOwner(next)];
    return chosen.map((request) => {
      this.dequeue(request.holdId);
      return this.grant(request, context.nowMs + request.claimMs, fence, true);
    });
  }

  /** The calling process's open claims, but for the one that the reply is about. */
  claimsOf(process: string, exceptHoldId: string): readonly StoreGrant[] {
    const claims: StoreGrant[] = [];
    for (const hold of this.holds.values()) {
      if (hold.isClaim && hold.request.process === process && hold.request.holdId !== exceptHoldId)
        claims.push(asGrant(hold));
    }
    return claims;
  }

  #push(waiter: MemoryWaiter): void {
    const { holdId, owner } = waiter.request;
    this.queue.set(holdId, waiter);
    this.#waitersOf.set(owner, (this.#waitersOf.get(owner) ?? 0) + 1);
  }

  #othersWithOwner(first: HoldRequest): HoldRequest[] {
    const requests = [...this.queue.values()].map(({ request }) => request);
    return requests.filter((request) => request.owner === first.owner && request !== first);
  }

  #nextLive(context: LockContext): HoldRequest | undefined {
    for (const { request } of this.queue.values()) {
      const process = this.#processes.get(request.process);
      if (process === undefined || process.liveUntilMs <= context.nowMs) {
        this.dequeue(request.holdId);
      } else if (request.process === context.caller || process.state === 'owed') {
        if (process.state === 'owed') process.state = 'live';
        return request;
      } else if (process.state === 'live') {
        if (context.isReachable(request.process)) return request;
        process.state = 'suspended';
      }
    }
    return undefined;
  }

  #suspend(process: string): void {
    const known = this.#processes.get(process);
    if (known !== undefined) known.state = 'suspended';
  }
}

export function asGrant(hold: MemoryHold): StoreGrant {
  return { holdId: hold.request.holdId, fence: hold.fence, endMs: hold.endMs, isClaim: hold.isClaim };
}
