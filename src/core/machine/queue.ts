import type { HoldRequest } from '../model/store.ts';
import { type Placed, SortedList } from './sorted-list.ts';

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
  readonly processes: Map<string, MemoryProcess> = new Map();
  readonly #waiters = new Map<string, Placed<MemoryWaiter>>();
  readonly #inOrder = new SortedList<MemoryWaiter>();
  readonly #ofOwner = new Map<string, Set<Placed<MemoryWaiter>>>();

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

  /** The waiter with so many before it. */
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
    const own = this.#ofOwner.get(owner);
    if (own === undefined) this.#ofOwner.set(owner, new Set([placed]));
    else own.add(placed);
    return this.#inOrder.rankOf(placed);
  }

  /** Returns whether it was there. */
  remove(holdId: string): boolean {
    const placed = this.#waiters.get(holdId);
    if (placed === undefined) return false;
    this.#waiters.delete(holdId);
    this.#inOrder.delete(placed);
    const { owner } = placed.item.request;
    const own = this.#ofOwner.get(owner);
    own?.delete(placed);
    if (own?.size === 0) this.#ofOwner.delete(owner);
    return true;
  }

  /** The others of the same owner, in order. */
  besides(first: HoldRequest): HoldRequest[] {
    const others = [...(this.#ofOwner.get(first.owner) ?? [])].filter(({ item }) => item.request !== first);
    others.sort((a, b) => a.place - b.place || a.order - b.order);
    return others.map(({ item }) => item.request);
  }
}

function placeOf({ request, sinceMs }: MemoryWaiter): number {
  return sinceMs - request.priority * priorityStepMs;
}
