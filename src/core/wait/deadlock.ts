import { elapsedMs, type Instant } from '../base/clock.ts';
import type { StoreAccess } from '../client/access.ts';
import { DeadlockError } from '../model/errors.ts';
import type { EdgeStore, WaitEdge } from '../model/store.ts';
import { findCycle, stands } from './cycle.ts';
import type { Waiter, WaitQueue } from './local-queue.ts';
import { type Moment, type Surroundings, WaitGraph } from './wait-graph.ts';

/** A wait of this process, as the store was told of it. */
interface PublishedWait {
  readonly edge: WaitEdge;
  /** The owners under which it may stand in the store. */
  readonly told: Set<string>;
  /** Those under which it does. */
  confirmed: readonly string[];
  /** When it was confirmed last. */
  since: Moment | undefined;
  /** When it must be told again, on the monotonic clock: edges do not last for ever. */
  dueMs: number;
  /** Since when it stands in its queue, on the store's clock, if that is known. */
  sinceMs: number | undefined;
  isPublishing: boolean;
}

/** The search for the waiters of one key. */
interface KeySearch {
  isRunning: boolean;
  /** Whether a wait was published while it ran. */
  isDue: boolean;
  /** Whether a failure was told since the last poll. */
  isReported: boolean;
  /** What the last search found, and how many found the same, one after the other. */
  last: Surroundings | undefined;
  unchanged: number;
}

/** An edge lasts no longer than its wait, and an edge that lasts for longer than this is told again after half of it. */
const maxEdgeMs = 3_600_000;
/** Of so many searches that find nothing new, one reads what an owner waits for, in place of who holds the key. */
const recheckEvery = 8;

/**
 * Finds deadlocks of the waiters here, over all processes. A waiter that others may wait for publishes its edge before the
 * search, so that the last one of a cycle to publish sees the whole cycle; the others see it at their next poll. A waiter is
 * the victim only of cycles in which it was queued last: so each cycle has one victim, without a word between the processes.
 * One search at a time serves all waiters of a key. While the store fails, nothing is found.
 */
export class Deadlocks {
  readonly #access: StoreAccess;
  readonly #onVictim: (waiter: Waiter, error: DeadlockError) => void;
  readonly #graph: WaitGraph;
  readonly #published = new Map<Waiter, PublishedWait>();
  readonly #searches = new WeakMap<WaitQueue, KeySearch>();

  constructor(access: StoreAccess, onVictim: (waiter: Waiter, error: DeadlockError) => void) {
    this.#access = access;
    this.#onVictim = onVictim;
    this.#graph = new WaitGraph(access);
  }

  /** Publishes a wait that has begun, and searches then. Costs nothing if nobody can wait for the waiter. */
  joined(waiter: Waiter): void {
    if (waiter.state !== 'waiting' || !this.#access.client.capabilities.edges) return;
    const owners = waiter.task.work.blockedOwners;
    if (owners.length > 0) this.#publish(waiter, owners);
  }

  /** Publishes what is to be published by now, and searches. */
  polled(queue: WaitQueue): void {
    if (!this.#access.client.capabilities.edges) return;
    const search = this.#searches.get(queue);
    if (search !== undefined) search.isReported = false;
    for (const waiter of queue.waiters) this.joined(waiter);
    if (search !== undefined) this.#searchNow(queue);
  }

  /** The store had lost the wait, and perhaps its edge: it was queued anew. */
  requeued(waiter: Waiter): void {
    const published = this.#published.get(waiter);
    if (published === undefined) return;
    published.confirmed = [];
    published.sinceMs = undefined;
  }

  /** The wait is over: its edge is removed. */
  forget(waiter: Waiter): void {
    const published = this.#published.get(waiter);
    if (published === undefined) return;
    this.#published.delete(waiter);
    if (this.#published.size === 0) this.#graph.clear();
    const { edge, told } = published;
    for (const owner of told) this.#edges.clear(owner, edge).catch((error: Error) => this.#report(waiter, error));
  }

  #publish(waiter: Waiter, owners: readonly string[]): void {
    const published = this.#published.get(waiter) ?? unpublished(waiter);
    this.#published.set(waiter, published);
    const now = this.#access.clock.now();
    if (now.monoMs >= published.dueMs) published.confirmed = [];
    if (published.isPublishing || owners.every((owner) => published.confirmed.includes(owner))) return;
    published.isPublishing = true;
    const edgeMs = this.#edgeMs(waiter, now);
    const told = owners.map((owner) => {
      published.told.add(owner);
      return this.#edges.set(owner, published.edge, edgeMs + this.#access.client.livenessMs);
    });
    Promise.all(told)
      .then(
        () => {
          published.confirmed = owners;
          published.since = this.#graph.now();
          published.dueMs = edgeMs < maxEdgeMs ? Number.POSITIVE_INFINITY : now.monoMs + edgeMs / 2;
          if (waiter.queue !== undefined && waiter.state === 'waiting') this.#searchNow(waiter.queue);
        },
        (error: Error) => this.#report(waiter, error),
      )
      .finally(() => {
        published.isPublishing = false;
      });
  }

  #edgeMs({ task: { waitMs, startedAt } }: Waiter, now: Instant): number {
    return Math.min(maxEdgeMs, Math.max(0, waitMs - elapsedMs(now, startedAt)));
  }

  /** Searches for all waiters of a key; once more if it is called meanwhile. */
  #searchNow(queue: WaitQueue): void {
    const search = this.#searchOf(queue);
    search.isDue = search.isRunning;
    if (search.isRunning) return;
    search.isRunning = true;
    this.#search(queue, search)
      .catch((error: Error) => queue.oldest && this.#report(queue.oldest, error))
      .finally(() => {
        search.isRunning = false;
        if (search.isDue) this.#searchNow(queue);
      });
  }

  async #search(queue: WaitQueue, search: KeySearch): Promise<void> {
    const waits = queue.waiters.flatMap((waiter) => {
      const published = this.#published.get(waiter);
      return published?.since === undefined ? [] : [{ waiter, published, since: published.since }];
    });
    const last = waits.at(-1);
    if (last === undefined) return;
    if (search.last !== undefined && search.unchanged >= recheckEvery) {
      search.unchanged = 0;
      const owners = [...search.last.holds.map(({ owner }) => owner), ...search.last.waits.keys()];
      if (!(await this.#graph.recheck(owners))) return;
    }
    const since = waits.reduce((latest, wait) => (wait.since.number > latest.number ? wait.since : latest), last.since);
    const found = await this.#graph.explore(last.published.edge, since);
    search.unchanged = found.isUnchanged ? search.unchanged + 1 : 0;
    search.last = found;
    const closing = new Set([...found.waits.values()].flat().flatMap(({ holds }) => holds.map(({ owner }) => owner)));
    for (const { waiter, published } of waits) {
      if (published.confirmed.some((owner) => closing.has(owner))) await this.#judge(waiter, published, found);
    }
  }

  /** Refuses a waiter that is the victim of a deadlock. */
  async #judge(waiter: Waiter, published: PublishedWait, { holds, waits }: Surroundings): Promise<void> {
    const { edge, confirmed } = published;
    published.sinceMs ??= (await this.#edges.wait(edge.request)).sinceMs;
    if (published.sinceMs === undefined) return;
    const found = findCycle({ edge, sinceMs: published.sinceMs, holds }, confirmed, waits);
    if (found === undefined || waiter.state !== 'waiting') return;
    // Read again once all of it was read: what is the same in both was there at the same time.
    if (!(await stands(this.#edges, found))) {
      published.sinceMs = undefined;
      this.#graph.forget(found);
    } else if (waiter.state === 'waiting') {
      const cycle = found.map((link) => ({ traceId: link.edge.traceId, key: link.edge.key }));
      this.#onVictim(waiter, new DeadlockError({ key: waiter.task.key, cycle }));
    }
  }

  #searchOf(queue: WaitQueue): KeySearch {
    let search = this.#searches.get(queue);
    if (search === undefined) {
      search = { isRunning: false, isDue: false, isReported: false, last: undefined, unchanged: 0 };
      this.#searches.set(queue, search);
    }
    return search;
  }

  get #edges(): EdgeStore {
    return this.#access.client.edges;
  }

  /** Once a poll and key: many waiters may have failed together. */
  #report({ task: { key }, queue }: Waiter, error: Error): void {
    const search = queue && this.#searchOf(queue);
    if (search?.isReported) return;
    if (search !== undefined) search.isReported = true;
    this.#access.events.emit('storeError', { operation: 'edges', key, error });
  }
}

function unpublished({ task: { key, request, work } }: Waiter): PublishedWait {
  return {
    edge: { request, traceId: work.traceId, key },
    told: new Set(),
    confirmed: [],
    since: undefined,
    dueMs: Number.POSITIVE_INFINITY,
    sinceMs: undefined,
    isPublishing: false,
  };
}
