import { lastedMs } from '../base/clock.ts';
import { DeadlockError } from '../model/errors.ts';
import type { EdgeStore, WaitEdge } from '../model/store.ts';
import type { Base } from '../runtime/runtime.ts';
import { findCycle, stands } from './cycle.ts';
import { eventOf, type Waiter } from './local-queue.ts';

/** A wait that was told of. */
interface PublishedEdge {
  readonly edge: WaitEdge;
  /** Under these its edge may stand in the store. */
  readonly owners: Set<string>;
  isLooking: boolean;
}

/**
 * Finds deadlocks of whoever waits here, over all processes. A waiter for whom others may wait tells so before it looks,
 * so that of a ring the last one to tell sees all of it; the others see it when they look again, with each poll. It looks
 * for rings of which it was queued last itself: so each has one victim, without a word between the processes. Where the
 * store fails, nothing is found until it is back.
 */
export class Deadlocks {
  readonly #base: Base;
  readonly #edges: EdgeStore | undefined;
  readonly #ttlMs: number;
  readonly #onVictim: (waiter: Waiter, error: DeadlockError) => void;
  readonly #told = new Map<Waiter, PublishedEdge>();

  /** `ttlMs` is how long a waiter may be silent. */
  constructor(base: Base, ttlMs: number, onVictim: (waiter: Waiter, error: DeadlockError) => void) {
    const { store, calls, clock, settings } = base;
    const call = <T>(run: () => Promise<T>): Promise<T> =>
      calls.run('edges', clock.now(), settings.storeTimeoutMs, run);
    this.#base = base;
    this.#edges = store.capabilities.edges ? store.edges && withDeadlines(store.edges, call) : undefined;
    this.#ttlMs = ttlMs;
    this.#onVictim = onVictim;
  }

  /** Looks whether a waiter is the victim of a deadlock; costs nothing where nobody can wait for it. */
  look(waiter: Waiter): void {
    const edges = this.#edges;
    if (edges === undefined || waiter.state !== 'waiting') return;
    const owners = waiter.ask.work.blockedOwners;
    if (owners.length === 0) return;
    const told = this.#told.get(waiter) ?? { edge: edgeOf(waiter), owners: new Set(), isLooking: false };
    if (told.isLooking) return;
    told.isLooking = true;
    this.#told.set(waiter, told);
    this.#search(edges, waiter, told, owners)
      .catch((error: Error) => this.#report(waiter, error))
      .finally(() => {
        told.isLooking = false;
      });
  }

  /** The wait is over: nobody needs to know of it any more. */
  forget(waiter: Waiter): void {
    const told = this.#told.get(waiter);
    if (told === undefined) return;
    this.#told.delete(waiter);
    for (const owner of told.owners) {
      this.#edges?.clear(owner, told.edge).catch((error: Error) => this.#report(waiter, error));
    }
  }

  async #search(edges: EdgeStore, waiter: Waiter, told: PublishedEdge, owners: readonly string[]): Promise<void> {
    for (const owner of owners) told.owners.add(owner);
    await Promise.all(owners.map((owner) => edges.set(owner, told.edge, this.#ttlMs)));
    const ring = waiter.state === 'waiting' ? await findCycle(edges, told.edge, owners) : undefined;
    // Read again once all of it was read: what is the same in both was there at the same time.
    if (ring === undefined || !(await stands(edges, ring)) || waiter.state !== 'waiting') return;
    const cycle = ring.map(({ edge: { traceId, key } }) => ({ traceId, key }));
    const waitedMs = lastedMs(this.#base.clock.now(), waiter.startedAt);
    this.#onVictim(waiter, new DeadlockError({ key: waiter.ask.key, cycle }));
    this.#base.events.emit('deadlock', { ...eventOf(waiter), waitedMs, cycle });
  }

  #report({ ask: { key } }: Waiter, error: Error): void {
    this.#base.events.emit('storeError', { operation: 'edges', key, error });
  }
}

/** Without what changes while it waits: an edge is removed as it was set. */
function edgeOf({ ask: { key, request, work } }: Waiter): WaitEdge {
  const { unanswered: _, ...constant } = request;
  return { request: constant, traceId: work.traceId, key };
}

function withDeadlines(edges: EdgeStore, call: <T>(run: () => Promise<T>) => Promise<T>): EdgeStore {
  return {
    set: (owner, edge, ttlMs) => call(() => edges.set(owner, edge, ttlMs)),
    clear: (owner, edge) => call(() => edges.clear(owner, edge)),
    of: (owner) => call(() => edges.of(owner)),
    wait: (request) => call(() => edges.wait(request)),
  };
}
