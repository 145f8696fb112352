import type { StoreAccess } from '../client/access.ts';
import type { EdgeStore, WaitEdge, WaitReply } from '../model/store.ts';
import { type KnownWait, type Link, unseen } from './cycle.ts';

type Hold = WaitReply['holds'][number];

/** A moment between two reads of the store. */
export interface Moment {
  readonly atMs: number;
  /** Rises with each read: reads of the same millisecond have an order, too. */
  readonly number: number;
}

/** What was read of a lock. */
interface KnownLock {
  readonly read: Moment;
  readonly holds: readonly Hold[];
  readonly holdIds: ReadonlySet<string>;
  /** When a hold was seen that was not there before. */
  readonly changed: Moment;
  usedMs: number;
}

/** What was read of an owner. */
interface KnownOwner {
  readonly read: Moment;
  readonly edges: readonly KnownEdge[];
  usedMs: number;
}

interface KnownEdge {
  readonly edge: WaitEdge;
  /** Since when it stands in its queue: it does not change. */
  sinceMs: number | undefined;
  /** Whether it stood in no queue when it was looked up: its wait is over. */
  isOver: boolean;
}

/** What the waiters of one lock wait for, directly and by others. */
export interface Surroundings {
  /** Since when the wait from which it was read stands in its queue; undefined if its wait is over. */
  readonly sinceMs: number | undefined;
  /** Who holds the lock. */
  readonly holds: readonly Hold[];
  /** By owner: what the holders wait for, and the holders of that, and so on. */
  readonly waits: ReadonlyMap<string, readonly KnownWait[]>;
  /** Whether only the lock itself had to be read, and its holders are those of the time before. */
  readonly isUnchanged: boolean;
}

/** So many waits of one level are looked up, if the branches of a few owners have very many. */
const maxWaits = 256;

/**
 * What this process knows of who waits for whom, for all of its searches. It reads a lock once for all that wait for it, and
 * reads again only what may have changed. A false memory does no harm: each cycle is read again as a whole.
 *
 * What an owner waits for is read until a while after it got a hold: it may have begun to wait before, and have published
 * that late. A wait that it begins later is queued later than the waiters that know the owner, and then it is the later wait
 * that searches.
 */
export class WaitGraph {
  readonly #access: StoreAccess;
  /** After so long, each process has published what it had failed to publish. */
  readonly #settleMs: number;
  /** So long, a search uses what another one has read. */
  readonly #freshMs: number;
  readonly #locks = new Map<string, KnownLock>();
  readonly #owners = new Map<string, KnownOwner>();
  #reads = 0;
  #prunedMs = 0;

  constructor(access: StoreAccess) {
    this.#access = access;
    this.#settleMs = access.client.livenessMs;
    this.#freshMs = access.settings.pollMs / 4;
  }

  /** The present moment: what is read from now on is later. */
  now(): Moment {
    this.#reads += 1;
    return { atMs: this.#access.clock.now().monoMs, number: this.#reads };
  }

  /**
   * Reads what the waiters of a lock wait for, level by level; all reads of one level travel together. `own` is one of these
   * waiters. Nothing is used that was read before `since`, when the last of them was published.
   */
  async explore(own: WaitEdge, since: Moment): Promise<Surroundings> {
    const firstRead = this.#reads;
    const before = this.#locks.get(own.request.id)?.changed;
    const { sinceMs } = await this.#readLock(own);
    const lock = this.#locks.get(own.request.id) as KnownLock;
    const waits = new Map<string, KnownWait[]>();
    const seen = new Set<string>();
    let level: Level = unseen(lock.holds, seen).map((hold) => [hold.owner, lock]);
    while (level.length > 0) {
      const edges = await this.#edgesOf(level, since);
      await this.#readWaits(edges, since);
      level = [];
      for (const [owner, known] of edges) {
        const next = this.#locks.get(known.edge.request.id);
        if (known.sinceMs === undefined || next === undefined) continue;
        const wait = { edge: known.edge, sinceMs: known.sinceMs, holds: next.holds };
        waits.set(owner, [...(waits.get(owner) ?? []), wait]);
        level.push(...unseen(next.holds, seen).map((hold): Level[number] => [hold.owner, next]));
      }
    }
    this.#prune();
    const isUnchanged = this.#reads === firstRead + 1 && lock.changed === before;
    return { sinceMs, holds: lock.holds, waits, isUnchanged };
  }

  /** Reads again what one owner of several waits for, that for which it was read longest ago. Returns whether it is new. */
  async recheck(owners: readonly string[]): Promise<boolean> {
    const read = (owner: string): number => this.#owners.get(owner)?.read.number ?? 0;
    const [oldest] = [...owners].sort((a, b) => read(a) - read(b));
    if (oldest === undefined) return false;
    const before = new Set(this.#owners.get(oldest)?.edges);
    return (await this.#readOwner(oldest)).some((edge) => !before.has(edge));
  }

  /** Forgets what made a cycle that did not stand. */
  forget(cycle: readonly Link[]): void {
    for (const { edge, hold } of cycle) {
      this.#locks.delete(edge.request.id);
      this.#owners.delete(hold.owner);
    }
  }

  clear(): void {
    this.#locks.clear();
    this.#owners.clear();
  }

  get #store(): EdgeStore {
    return this.#access.client.edges;
  }

  /** The edges of the owners of a level. */
  async #edgesOf(level: Level, since: Moment): Promise<[string, KnownEdge][]> {
    const lists = await Promise.all(
      level.map(async ([owner, lock]): Promise<[string, KnownEdge][]> => {
        const known = this.#owners.get(owner);
        const edges = this.#isUsable(known, lock, since) ? known.edges : await this.#readOwner(owner);
        return edges.map((edge) => [owner, edge]);
      }),
    );
    return lists.flat().slice(0, maxWaits);
  }

  /** Looks up the waits that are not known, and who holds what they wait for. */
  async #readWaits(edges: readonly [string, KnownEdge][], since: Moment): Promise<void> {
    const nowMs = this.#access.clock.now().monoMs;
    const due = new Map<string, KnownEdge[]>();
    for (const [, known] of edges) {
      const { id } = known.edge.request;
      const others = due.get(id);
      if (known.isOver) continue;
      if (known.sinceMs === undefined) due.set(id, [...(others ?? []), known]);
      else if (others === undefined && !this.#isFresh(this.#locks.get(id), since, nowMs)) due.set(id, [known]);
    }
    await Promise.all(
      [...due.values()].flat().map(async (known) => {
        const { sinceMs } = await this.#readLock(known.edge);
        known.sinceMs = sinceMs;
        known.isOver = sinceMs === undefined;
      }),
    );
  }

  async #readLock(edge: WaitEdge): Promise<WaitReply> {
    const { id } = edge.request;
    const read = this.now();
    const reply = await this.#store.wait(edge.request);
    const before = this.#locks.get(id);
    if (before === undefined || before.read.number < read.number) {
      const holdIds = new Set(reply.holds.map(({ holdId }) => holdId));
      const isSame = before !== undefined && [...holdIds].every((holdId) => before.holdIds.has(holdId));
      const changed = isSame ? before.changed : this.now();
      this.#locks.set(id, { read, holds: reply.holds, holdIds, changed, usedMs: read.atMs });
    }
    return reply;
  }

  async #readOwner(owner: string): Promise<readonly KnownEdge[]> {
    const read = this.now();
    const told = await this.#store.of(owner);
    // A wait that was over may have been queued anew, if the store had lost it.
    const waiting = this.#owners.get(owner)?.edges.filter(({ isOver }) => !isOver) ?? [];
    const before = new Map(waiting.map((known) => [known.edge.request.holdId, known]));
    const edges = told.map((edge) => before.get(edge.request.holdId) ?? { edge, sinceMs: undefined, isOver: false });
    this.#owners.set(owner, { read, edges, usedMs: read.atMs });
    return edges;
  }

  #isUsable(known: KnownOwner | undefined, { changed }: KnownLock, since: Moment): known is KnownOwner {
    if (known === undefined) return false;
    const nowMs = this.#access.clock.now().monoMs;
    known.usedMs = nowMs;
    const { atMs, number } = known.read;
    if (number < Math.max(since.number, changed.number)) return false;
    return nowMs - atMs < this.#freshMs || atMs >= Math.max(since.atMs, changed.atMs) + this.#settleMs;
  }

  #isFresh(lock: KnownLock | undefined, since: Moment, nowMs: number): boolean {
    if (lock === undefined) return false;
    lock.usedMs = nowMs;
    return lock.read.number > since.number && nowMs - lock.read.atMs < this.#freshMs;
  }

  /** Forgets what no search has used for a while. */
  #prune(): void {
    const nowMs = this.#access.clock.now().monoMs;
    if (nowMs - this.#prunedMs < this.#settleMs) return;
    this.#prunedMs = nowMs;
    for (const known of [this.#locks, this.#owners]) {
      for (const [name, { usedMs }] of known) if (nowMs - usedMs > this.#settleMs) known.delete(name);
    }
  }
}

/** Owners, and the lock that each of them was seen to hold. */
type Level = [owner: string, lock: KnownLock][];
