import { elapsedMs, type Instant } from '../base/clock.ts';
import type { StoreAccess } from '../client/access.ts';
import { DeadlockError } from '../model/errors/refusals.ts';
import type { EdgeStore, WaitEdge, WaitReply } from '../model/store.ts';
import type { Waiter, WaitQueue } from '../wait/local-queue.ts';
import type { Refuse, WaitObserver } from '../wait/observer.ts';
import { findCycle, type KnownWait, readWaits, stands } from './cycle.ts';

/** A wait of this process, as published in the store. */
interface PublishedWait {
  readonly edge: WaitEdge;
  /** The owners whose edge was sent: it may be in the store. */
  readonly sentFor: Set<string>;
  /** The owners whose edge the store confirmed. */
  storedFor: readonly string[];
  /** When it must be published again, on the monotonic clock: edges expire. */
  dueMs: number;
  isPublishing: boolean;
}

/** The search for the waiters of one key. Its times are of the monotonic clock. */
interface KeySearch {
  isRunning: boolean;
  /** Whether a wait was published while it ran. */
  isDue: boolean;
  /** Whether a failure was reported since the last poll. */
  wasFailureReported: boolean;
  /** The holds that were seen last. */
  holds: WaitReply['holds'];
  /** When a wait was published, or a new hold was seen. */
  lastChangeMs: number;
  /** When the last complete search began. */
  lastFullSearchMs: number;
  /** Whether that search found that the holders wait for nothing. */
  holdersAreIdle: boolean;
  /** Counts the searches in which nothing could have changed. */
  skippedSearches: number;
}

/** An edge lasts for its wait, but no longer than this: then it is published again after half of this time. */
const maxEdgeMs = 3_600_000;
/** Every 8th skipped search reads the edges of one holder instead of the key's holds. */
const recheckEvery = 8;

/**
 * Finds deadlocks of this process's waiters, over all processes. A waiter that others may wait for publishes its edge before
 * the search: the last one of a cycle to publish sees the whole cycle, the others see it at their next poll. A waiter is the
 * victim only of cycles in which it was queued last. Each cycle thus has one victim, without messages between processes.
 *
 * One search at a time serves all waiters of a key. If the holders wait for nothing, a wait that one of them begins later is
 * queued later, and searches itself. Therefore, if no wait was published and no hold began for a while, a search reads only
 * the key's holds. Every 8th of these reads the waits of one holder instead, which may have been published very late. While the
 * store fails, nothing is found.
 */
export class Deadlocks implements WaitObserver {
  readonly #access: StoreAccess;
  readonly #refuse: Refuse;
  readonly #published = new Map<Waiter, PublishedWait>();
  readonly #searches = new WeakMap<WaitQueue, KeySearch>();

  /** The store of `access` has edges. */
  constructor(access: StoreAccess, refuse: Refuse) {
    this.#access = access;
    this.#refuse = refuse;
  }

  /**
   * Publishes a wait, then searches. Costs nothing if nobody can wait for the waiter. A waiter for a permit waits for any of
   * several owners: that is no edge.
   */
  onWaiting(waiter: Waiter): void {
    if (waiter.state !== 'waiting' || waiter.task.request.mode === 'permit') return;
    const owners = waiter.task.work.blockedOwners;
    if (owners.length > 0) this.#publish(waiter, owners);
  }

  /** Publishes the waits that are due, and searches. */
  onPolled(queue: WaitQueue): void {
    const search = this.#searches.get(queue);
    if (search !== undefined) search.wasFailureReported = false;
    for (const waiter of queue.waiters) this.onWaiting(waiter);
    if (search !== undefined) this.#searchNow(queue);
  }

  /** The store had lost the wait, and perhaps its edge. */
  onRequeued(waiter: Waiter): void {
    const published = this.#published.get(waiter);
    if (published !== undefined) published.storedFor = [];
  }

  /** Removes the edge of the wait. */
  onEnded(waiter: Waiter): void {
    const published = this.#published.get(waiter);
    if (published === undefined) return;
    this.#published.delete(waiter);
    const { edge, sentFor } = published;
    for (const owner of sentFor) this.#edges.clear(owner, edge).catch((error: Error) => this.#report(waiter, error));
  }

  #publish(waiter: Waiter, owners: readonly string[]): void {
    const published = this.#published.get(waiter) ?? unpublished(waiter);
    this.#published.set(waiter, published);
    const now = this.#access.clock.now();
    if (now.monoMs >= published.dueMs) published.storedFor = [];
    if (published.isPublishing || owners.every((owner) => published.storedFor.includes(owner))) return;
    published.isPublishing = true;
    const edgeMs = this.#edgeMs(waiter, now);
    const sent = owners.map((owner) => {
      published.sentFor.add(owner);
      return this.#edges.set(owner, published.edge, edgeMs + this.#access.client.livenessMs);
    });
    Promise.all(sent)
      .then(
        () => {
          published.storedFor = owners;
          published.dueMs = edgeMs < maxEdgeMs ? Number.POSITIVE_INFINITY : now.monoMs + edgeMs / 2;
          if (waiter.queue === undefined || waiter.state !== 'waiting') return;
          this.#searchOf(waiter.queue).lastChangeMs = this.#nowMs;
          this.#searchNow(waiter.queue);
        },
        (error: Error) => this.#report(waiter, error),
      )
      .finally(() => {
        published.isPublishing = false;
      });
  }

  #edgeMs({ task: { waitMs, startedAt } }: Waiter, now: Instant): number {
    return Math.ceil(Math.min(maxEdgeMs, Math.max(0, waitMs - elapsedMs(now, startedAt))));
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
    const waiters = queue.waiters.filter((waiter) => this.#confirmedOf(waiter).length > 0);
    const newest = waiters.at(-1);
    if (newest === undefined) return;
    if (await this.#isRechecked(search)) return;
    const startedMs = this.#nowMs;
    const { holds } = await this.#edges.wait(newest.task.request);
    const before = new Set(search.holds.map(({ holdId }) => holdId));
    if (holds.some(({ holdId }) => !before.has(holdId))) search.lastChangeMs = startedMs;
    search.holds = holds;
    if (this.#isQuiet(search)) return;
    search.lastFullSearchMs = startedMs;
    const waits = await readWaits(this.#edges, holds);
    search.holdersAreIdle = waits.size === 0;
    const closing = new Set([...waits.values()].flat().flatMap((wait) => wait.holds.map(({ owner }) => owner)));
    for (const waiter of waiters) {
      if (this.#confirmedOf(waiter).some((owner) => closing.has(owner))) await this.#judge(waiter, holds, waits);
    }
  }

  /** Whether nothing can have changed since a complete search, except an edge that was published very late. */
  #isQuiet({ holdersAreIdle, lastFullSearchMs, lastChangeMs }: KeySearch): boolean {
    // By then each process has published the edges that it had failed to publish.
    return holdersAreIdle && lastFullSearchMs >= lastChangeMs + this.#access.client.livenessMs;
  }

  /** Whether this search only read the edges of one holder, and found none. */
  async #isRechecked(search: KeySearch): Promise<boolean> {
    if (!this.#isQuiet(search)) return false;
    search.skippedSearches += 1;
    if (search.skippedSearches % recheckEvery !== 0) return false;
    const hold = search.holds[(search.skippedSearches / recheckEvery) % search.holds.length];
    if (hold === undefined) return false;
    search.holdersAreIdle = (await this.#edges.of(hold.owner)).length === 0;
    return search.holdersAreIdle;
  }

  /** Refuses a waiter that is the victim of a deadlock. */
  async #judge(waiter: Waiter, holds: WaitReply['holds'], waits: ReadonlyMap<string, KnownWait[]>): Promise<void> {
    const edge = edgeOf(waiter);
    const { sinceMs } = await this.#edges.wait(edge.request);
    if (sinceMs === undefined) return;
    const found = findCycle({ edge, sinceMs, holds }, this.#confirmedOf(waiter), waits);
    // Read twice: whatever is the same in both existed at the same time.
    if (found === undefined || !(await stands(this.#edges, found)) || waiter.state !== 'waiting') return;
    const cycle = found.map((link) => ({ traceId: link.edge.traceId, key: link.edge.key }));
    this.#refuse(waiter, new DeadlockError({ key: waiter.task.key, category: waiter.task.category, cycle }));
  }

  #confirmedOf(waiter: Waiter): readonly string[] {
    return this.#published.get(waiter)?.storedFor ?? [];
  }

  #searchOf(queue: WaitQueue): KeySearch {
    let search = this.#searches.get(queue);
    if (search === undefined) {
      search = newSearch();
      this.#searches.set(queue, search);
    }
    return search;
  }

  get #nowMs(): number {
    return this.#access.clock.now().monoMs;
  }

  get #edges(): EdgeStore {
    return this.#access.client.edges;
  }

  /** Once for each poll of a key: many waiters may have failed together. */
  #report({ task, queue }: Waiter, error: Error): void {
    const search = queue && this.#searchOf(queue);
    if (search?.wasFailureReported) return;
    if (search !== undefined) search.wasFailureReported = true;
    this.#access.client.reportBackground('edges', task, error);
  }
}

function newSearch(): KeySearch {
  return {
    isRunning: false,
    isDue: false,
    wasFailureReported: false,
    holds: [],
    lastChangeMs: Number.NEGATIVE_INFINITY,
    lastFullSearchMs: Number.NEGATIVE_INFINITY,
    holdersAreIdle: false,
    skippedSearches: 0,
  };
}

function unpublished(waiter: Waiter): PublishedWait {
  const edge = edgeOf(waiter);
  return { edge, sentFor: new Set(), storedFor: [], dueMs: Number.POSITIVE_INFINITY, isPublishing: false };
}

function edgeOf({ task: { key, request, work } }: Waiter): WaitEdge {
  return { request, traceId: work.traceId, key };
}
