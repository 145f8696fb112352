import { type Clock, type Instant, systemClock } from '../clock.ts';
import { asGrant, type LockContext, type MemoryHold, MemoryLock } from './memory-lock.ts';
import type {
  AcquireReply,
  AcquireTerms,
  HoldRequest,
  InspectReply,
  LockStore,
  ReleaseReply,
  ReleaseTerms,
  RenewReply,
  RenewTerms,
  StoreCapabilities,
  StoreGrant,
  StoreListener,
  StoreMessage,
  Unsubscribe,
} from './store.ts';

/**
 * Locks in the memory of this process: the embedded default, and the reference for the other stores. It excludes
 * requests of one process from each other, never those of another process. Several `Locks` may share one.
 */
export class MemoryStore implements LockStore {
  readonly capabilities: StoreCapabilities = {
    queue: true,
    handOff: true,
    reachability: true,
    modes: false,
    shared: false,
  };
  readonly #clock: Clock;
  readonly #start: Instant;
  readonly #locks = new Map<string, MemoryLock>();
  readonly #listeners = new Map<string, StoreListener>();
  // One for all keys: no key needs to be remembered after its last hold.
  #lastFence = 0;
  // Two generations, so that forgetting is one assignment: a tombstone lives for one to two of the longest asked for.
  #tombstones = new Map<string, ReleaseReply['status']>();
  #olderTombstones = new Map<string, ReleaseReply['status']>();
  #tombstoneMs = 0;
  #turnedMs = 0;

  constructor(options: { clock?: Clock } = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#start = this.#clock.now();
  }

  async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const nowMs = this.#nowMs();
    if (this.#tombstone(request.holdId, nowMs) !== undefined)
      return { status: 'cancelled', nowMs, claims: this.#claims(request, nowMs) };
    const lock = this.#lock(request.id);
    lock.dropExpired(nowMs);
    const isNew = !lock.queue.has(request.holdId);
    if (!isNew) lock.markLive(request.process, nowMs + terms.livenessMs);
    if (lock.holds.size === 0) this.#handOff(lock, nowMs, request.process);

    const hold = lock.holds.get(request.holdId) ?? this.#enter(lock, request, nowMs + terms.leaseMs);
    const claims = lock.claimsOf(request.process, request.holdId);
    if (hold !== undefined) return { status: 'granted', grant: asGrant(hold), nowMs, claims };
    const freeInMs = lock.freeInMs(nowMs);
    if (!terms.queue) return { status: 'refused', freeInMs, nowMs, claims };
    if (isNew) {
      if (lock.queue.size >= terms.maxWaiters) return { status: 'full', freeInMs, nowMs, claims };
      lock.enqueue(request, terms, nowMs);
    }
    return { status: 'queued', isNew, freeInMs, nowMs, claims };
  }

  async renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    const nowMs = this.#nowMs();
    const hold = this.#locks.get(request.id)?.holds.get(request.holdId);
    if (hold === undefined || hold.fence !== terms.fence || hold.endMs <= nowMs) return { status: 'lost' };
    hold.endMs = Math.max(hold.endMs, nowMs + terms.leaseMs);
    hold.isClaim = false;
    return { status: 'renewed', endMs: hold.endMs, nowMs };
  }

  async release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    const nowMs = this.#nowMs();
    const before = this.#tombstone(request.holdId, nowMs);
    if (before !== undefined) return { status: before, nowMs, claims: this.#claims(request, nowMs) };
    const lock = this.#locks.get(request.id);
    const status = lock === undefined ? 'absent' : remove(lock, request.holdId, nowMs);
    if (terms.tombstoneMs > 0) this.#bury(request.holdId, status, terms.tombstoneMs);
    if (lock === undefined) return { status, nowMs, claims: [] };
    lock.dropExpired(nowMs);
    if (lock.holds.size === 0) this.#handOff(lock, nowMs, request.process);
    const claims = lock.claimsOf(request.process, request.holdId);
    if (lock.isUnused) this.#locks.delete(request.id);
    return { status, nowMs, claims };
  }

  async inspect(id: string): Promise<InspectReply> {
    const nowMs = this.#nowMs();
    const lock = this.#locks.get(id);
    const holds = [...(lock?.holds.values() ?? [])].filter((hold) => hold.endMs > nowMs);
    return {
      nowMs,
      holds: holds.map((hold) => ({ ...asGrant(hold), owner: hold.request.owner })),
      waiters: [...(lock?.queue.values() ?? [])].map(({ request, sinceMs }) => ({
        holdId: request.holdId,
        owner: request.owner,
        sinceMs,
      })),
    };
  }

  async forceRelease(id: string, fence: number): Promise<boolean> {
    const nowMs = this.#nowMs();
    const lock = this.#locks.get(id);
    lock?.dropExpired(nowMs);
    if (lock?.holder?.fence !== fence) return false;
    const taken = [...lock.holds.values()];
    lock.holds.clear();
    this.#handOff(lock, nowMs, undefined);
    for (const { request } of taken) this.#tell(request.process, { kind: 'lost', holdId: request.holdId });
    if (lock.isUnused) this.#locks.delete(id);
    return true;
  }

  async subscribe(process: string, listener: StoreListener): Promise<Unsubscribe> {
    this.#listeners.set(process, listener);
    return async () => {
      this.#listeners.delete(process);
    };
  }

  #claims(request: HoldRequest, nowMs: number): readonly StoreGrant[] {
    const lock = this.#locks.get(request.id);
    lock?.dropExpired(nowMs);
    return lock?.claimsOf(request.process, request.holdId) ?? [];
  }

  /** Grants a free key, or the key to an owner that has it already. */
  #enter(lock: MemoryLock, request: HoldRequest, endMs: number): MemoryHold | undefined {
    const { holder } = lock;
    if (holder !== undefined && holder.request.owner !== request.owner) return undefined;
    lock.dequeue(request.holdId);
    return lock.grant(request, endMs, holder?.fence ?? this.#nextFence(), false);
  }

  #handOff(lock: MemoryLock, nowMs: number, caller: string | undefined): void {
    const context: LockContext = {
      nowMs,
      caller,
      nextFence: () => this.#nextFence(),
      isReachable: (process) => this.#listeners.has(process),
    };
    for (const hold of lock.handOff(context)) {
      if (hold.request.process === caller) continue;
      this.#tell(hold.request.process, { kind: 'granted', grant: asGrant(hold) });
    }
  }

  #tell(process: string, message: StoreMessage): void {
    queueMicrotask(() => this.#listeners.get(process)?.(message));
  }

  #lock(id: string): MemoryLock {
    let lock = this.#locks.get(id);
    if (lock === undefined) {
      lock = new MemoryLock();
      this.#locks.set(id, lock);
    }
    return lock;
  }

  #nextFence(): number {
    this.#lastFence = Math.max(this.#lastFence + 1, Math.floor(this.#nowMs() * 1000));
    return this.#lastFence;
  }

  /** Never steps: the wall clock at the start, and the monotonic time since. */
  #nowMs(): number {
    return this.#start.wallMs + this.#clock.now().monoMs - this.#start.monoMs;
  }

  #tombstone(holdId: string, nowMs: number): ReleaseReply['status'] | undefined {
    if (nowMs - this.#turnedMs > this.#tombstoneMs) {
      this.#olderTombstones = nowMs - this.#turnedMs > 2 * this.#tombstoneMs ? new Map() : this.#tombstones;
      this.#tombstones = new Map();
      this.#turnedMs = nowMs;
    }
    return this.#tombstones.get(holdId) ?? this.#olderTombstones.get(holdId);
  }

  #bury(holdId: string, status: ReleaseReply['status'], tombstoneMs: number): void {
    this.#tombstoneMs = Math.max(this.#tombstoneMs, tombstoneMs);
    this.#tombstones.set(holdId, status);
  }
}

function remove(lock: MemoryLock, holdId: string, nowMs: number): ReleaseReply['status'] {
  const hold = lock.holds.get(holdId);
  if (hold === undefined) return lock.dequeue(holdId) ? 'cancelled' : 'absent';
  lock.holds.delete(holdId);
  return hold.endMs > nowMs ? 'released' : 'expired';
}
