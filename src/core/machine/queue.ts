import { ancestorsOf } from '../model/owner.ts';
import type { HoldRequest } from '../model/store.ts';
import { byPlace, type Placed, SortedList } from './sorted-list.ts';

/** A waiter, and since when it waits on the store's clock. */
export interface MemoryWaiter {
  readonly request: HoldRequest;
  readonly sinceMs: number;
  /**
   * 0, or the depth of the holder that it is nested in: it is ahead of all with a lower one. Otherwise a stranger ahead of it would
   * wait for the holder, the holder for its nested call, and nobody would move.
   */
  readonly front: number;
}

/** A process with waiters, and until when it counts as live on the store's clock. */
export interface MemoryProcess {
  liveUntilMs: number;
  /** `suspended`: skipped until it polls. `owed`: it has polled since, and must not be skipped at its next turn. */
  state: 'live' | 'suspended' | 'owed';
}

/** One step of priority counts as much as this time of waiting. */
const priorityStepMs = 10_000;
/** One step of `front` counts more than any time of waiting. */
const frontStepMs = 1e12;

/** The waiters for a lock, in order, and their processes. */
export class MemoryQueue {
  readonly processes: Map<string, MemoryProcess> = new Map();
  readonly #waiters = new Map<string, Placed<MemoryWaiter>>();
  readonly #inOrder = new SortedList<MemoryWaiter>();
  /** The waiters of each owner and of its descendants. */
  readonly #within = new Map<string, Set<Placed<MemoryWaiter>>>();

  get size(): number {
    return this.#waiters.size;
  }

  /** In order. */
  get waiters(): Iterable<MemoryWaiter> {
    return this.#inOrder;
  }

  get(holdId: string): MemoryWaiter | undefined {
    return this.#waiters.get(holdId)?.item;
  }

  /** The waiter at an index. */
  at(position: number): MemoryWaiter | undefined {
    return this.#inOrder.at(position);
  }

  /** How many are before a waiter; all if it does not wait. */
  positionOf(holdId: string): number {
    const placed = this.#waiters.get(holdId);
    return placed === undefined ? this.size : this.#inOrder.rankOf(placed);
  }

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
    const { holdId, owner } = waiter.request;
    const placed = this.#inOrder.add(waiter, placeOf(waiter));
    this.#waiters.set(holdId, placed);
    for (const ancestor of ancestorsOf(owner)) {
      const within = this.#within.get(ancestor);
      if (within === undefined) this.#within.set(ancestor, new Set([placed]));
      else within.add(placed);
    }
    return this.#inOrder.rankOf(placed);
  }

  /** Returns whether it was there. */
  remove(holdId: string): boolean {
    const placed = this.#waiters.get(holdId);
    if (placed === undefined) return false;
    this.#waiters.delete(holdId);
    this.#inOrder.delete(placed);
    for (const ancestor of ancestorsOf(placed.item.request.owner)) {
      const within = this.#within.get(ancestor);
      within?.delete(placed);
      if (within?.size === 0) this.#within.delete(ancestor);
    }
    return true;
  }

  /** The waiters of an owner and of its descendants, in order. */
  within(owner: string): readonly MemoryWaiter[] {
    return [...(this.#within.get(owner) ?? [])].sort(byPlace).map(({ item }) => item);
  }

  /** Moves a waiter ahead of those with a lower `front`. */
  advance(waiter: MemoryWaiter, front: number): void {
    if (front <= waiter.front) return;
    this.remove(waiter.request.holdId);
    this.add({ ...waiter, front });
  }
}

function placeOf({ request, sinceMs, front }: MemoryWaiter): number {
  return sinceMs - request.priority * priorityStepMs - front * frontStepMs;
}
