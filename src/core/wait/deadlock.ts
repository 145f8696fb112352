import type { StoreAccess } from '../client/access.ts';
import { DeadlockError } from '../model/errors.ts';
import type { EdgeStore, WaitEdge } from '../model/store.ts';
import { findCycle, stands } from './cycle.ts';
import type { Waiter } from './local-queue.ts';

/** The edge of a waiter, as the store was told of it. */
interface PublishedEdge {
  readonly edge: WaitEdge;
  /** The owners under which it may stand in the store. */
  readonly owners: Set<string>;
  isLooking: boolean;
}

/**
 * Finds deadlocks of the waiters here, over all processes. A waiter that others may wait for publishes its edge before it
 * looks, so that the last one of a cycle to publish sees the whole cycle; the others see it when they look again, with each
 * poll. A waiter looks only for cycles in which it was queued last: so each cycle has one victim, without a word between
 * the processes. While the store fails, nothing is found.
 */
export class Deadlocks {
  readonly #access: StoreAccess;
  readonly #onVictim: (waiter: Waiter, error: DeadlockError) => void;
  readonly #published = new Map<Waiter, PublishedEdge>();

  constructor(access: StoreAccess, onVictim: (waiter: Waiter, error: DeadlockError) => void) {
    this.#access = access;
    this.#onVictim = onVictim;
  }

  /** Looks whether a waiter is the victim of a deadlock. Costs nothing if nobody can wait for it. */
  look(waiter: Waiter): void {
    if (!this.#access.client.capabilities.edges || waiter.state !== 'waiting') return;
    const owners = waiter.task.work.blockedOwners;
    if (owners.length === 0) return;
    const published = this.#published.get(waiter) ?? { edge: edgeOf(waiter), owners: new Set(), isLooking: false };
    if (published.isLooking) return;
    published.isLooking = true;
    this.#published.set(waiter, published);
    this.#search(waiter, published, owners)
      .catch((error: Error) => this.#report(waiter, error))
      .finally(() => {
        published.isLooking = false;
      });
  }

  /** The wait is over: its edge is removed. */
  forget(waiter: Waiter): void {
    const published = this.#published.get(waiter);
    if (published === undefined) return;
    this.#published.delete(waiter);
    const { edge, owners } = published;
    for (const owner of owners) this.#edges.clear(owner, edge).catch((error: Error) => this.#report(waiter, error));
  }

  async #search(waiter: Waiter, { edge, owners: told }: PublishedEdge, owners: readonly string[]): Promise<void> {
    const edges = this.#edges;
    for (const owner of owners) told.add(owner);
    await Promise.all(owners.map((owner) => edges.set(owner, edge, this.#access.client.livenessMs)));
    const found = waiter.state === 'waiting' ? await findCycle(edges, edge, owners) : undefined;
    // Read again once all of it was read: what is the same in both was there at the same time.
    if (found === undefined || !(await stands(edges, found)) || waiter.state !== 'waiting') return;
    const cycle = found.map((link) => ({ traceId: link.edge.traceId, key: link.edge.key }));
    this.#onVictim(waiter, new DeadlockError({ key: waiter.task.key, cycle }));
  }

  get #edges(): EdgeStore {
    return this.#access.client.edges;
  }

  #report({ task: { key } }: Waiter, error: Error): void {
    this.#access.events.emit('storeError', { operation: 'edges', key, error });
  }
}

function edgeOf({ task: { key, request, work } }: Waiter): WaitEdge {
  return { request, traceId: work.traceId, key };
}
