import type { HoldRequest } from '../../model/store.ts';

/** A waiter, and since when it waits on the store's clock. */
export interface MemoryWaiter {
  readonly request: HoldRequest;
  readonly sinceMs: number;
}

/** A process with waiters, and until when it counts as live on the store's clock. */
export interface MemoryProcess {
  liveUntilMs: number;
  /** `suspended`: skipped until it polls. `owed`: it has polled since, and must not be skipped at its next turn. */
  state: 'live' | 'suspended' | 'owed';
}

/** One step of priority counts as much as this time of waiting. */
const priorityStepMs = 10_000;

/** The waiters for a lock, in order, and their processes. */
export class MemoryQueue {
  readonly waiters: Map<string, MemoryWaiter> = new Map();
  readonly processes: Map<string, MemoryProcess> = new Map();
  /** How many waiters each owner has. The queue is searched for other waiters of an owner only if there are any. */
  readonly #waitersOf = new Map<string, number>();
  /** The last place in the queue, or one that was the last. */
  #lastPlace = Number.NEGATIVE_INFINITY;

  markLive(process: string, untilMs: number): void {
    const known = this.processes.get(process);
    const state = known === undefined || known.state === 'live' ? 'live' : 'owed';
    this.processes.set(process, { liveUntilMs: Math.max(untilMs, known?.liveUntilMs ?? 0), state });
  }

  suspend(process: string): void {
    const known = this.processes.get(process);
    if (known !== undefined) known.state = 'suspended';
  }

  /** Returns how many waiters are before it. */
  add(waiter: MemoryWaiter): number {
    const { waiters } = this;
    const { holdId, owner } = waiter.request;
    const place = placeOf(waiter);
    // Most waiters come last. Those that belong behind this one are appended again.
    const behind = place < this.#lastPlace ? [...waiters.values()].filter((other) => placeOf(other) > place) : [];
    for (const other of behind) waiters.delete(other.request.holdId);
    waiters.set(holdId, waiter);
    for (const other of behind) waiters.set(other.request.holdId, other);
    this.#lastPlace = Math.max(this.#lastPlace, place);
    this.#waitersOf.set(owner, (this.#waitersOf.get(owner) ?? 0) + 1);
    return waiters.size - behind.length - 1;
  }

  /** Returns whether it was there. */
  remove(holdId: string): boolean {
    const waiter = this.waiters.get(holdId);
    if (waiter === undefined) return false;
    this.waiters.delete(holdId);
    const { owner } = waiter.request;
    const others = (this.#waitersOf.get(owner) ?? 1) - 1;
    if (others === 0) this.#waitersOf.delete(owner);
    else this.#waitersOf.set(owner, others);
    return true;
  }

  /** The other waiters of the same owner. */
  besides(first: HoldRequest): HoldRequest[] {
    if (this.#waitersOf.get(first.owner) === 1) return [];
    const requests = [...this.waiters.values()].map(({ request }) => request);
    return requests.filter((request) => request.owner === first.owner && request !== first);
  }
}

function placeOf({ request, sinceMs }: MemoryWaiter): number {
  return sinceMs - request.priority * priorityStepMs;
}
