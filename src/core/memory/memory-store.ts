import { type Clock, type Instant, systemClock } from '../base/clock.ts';
import { MemoryLock } from '../machine/lock-state.ts';
import {
  acquire,
  forceRelease,
  inspect,
  type LockHost,
  release,
  renew,
  transfer,
  wait,
} from '../machine/operations.ts';
import type {
  AcquireReply,
  AcquireTerms,
  EdgeStore,
  HoldRequest,
  InspectReply,
  ListReply,
  ListRequest,
  LockStore,
  ReleaseReply,
  ReleaseTerms,
  RenewReply,
  RenewTerms,
  StoreCapabilities,
  StoreListener,
  StoreMessage,
  SubscribeOptions,
  TransferReply,
  TransferTerms,
  Unsubscribe,
} from '../model/store.ts';
import { MemoryEdges } from './edges.ts';
import { Outbox } from './outbox.ts';
import { MemoryTombstones } from './tombstones.ts';

/**
 * Locks in the memory of this process: the embedded default, and the reference for the other stores. It excludes
 * requests of one process from each other, never those of another process. Several `Locks` may share one. A call takes
 * effect before it returns.
 *
 * @example
 * ```ts
 * import { createLocks, MemoryStore } from 'reenlock';
 *
 * const store = new MemoryStore();
 * const orders = createLocks({ store, waitMs: 1_000 });
 * const reports = createLocks({ store, waitMs: 60_000 });
 * ```
 */
export class MemoryStore implements LockStore {
  readonly capabilities: StoreCapabilities = {
    queue: true,
    handOff: true,
    reachability: true,
    modes: true,
    permits: true,
    shared: false,
    minFence: true,
    edges: true,
    transfer: true,
  };
  readonly edges: EdgeStore = new MemoryEdges(
    () => this.#nowMs(),
    (request) => wait(this.#lock(request.id), this.#nowMs(), request),
  );
  readonly #clock: Clock;
  readonly #start: Instant;
  readonly #locks = new Map<string, MemoryLock>();
  readonly #listeners = new Map<string, StoreListener>();
  /** The listeners for keys that become free. */
  readonly #freedListeners = new Set<string>();
  // One counter for all keys: a key can then be forgotten after its last hold.
  #lastFence = 0;
  readonly #tombstones = new MemoryTombstones();
  readonly #outbox = new Outbox();
  /** An unused lock, for the next call that needs one: most locks last for one hold. */
  #spare: MemoryLock | undefined;
  /** Shared by all calls: each ends before the next begins. */
  readonly #host = {
    nowMs: 0,
    caller: undefined as string | undefined,
    nextFence: (least?: number): number => this.#nextFence(least),
    isReachable: (process: string): boolean => this.#listeners.has(process),
    send: (process: string, message: StoreMessage): void => this.#send(process, message),
    buried: (holdId: string): ReleaseReply['status'] | undefined => this.#tombstones.get(holdId, this.#host.nowMs),
    bury: ({ holdId }: HoldRequest, status: ReleaseReply['status'], tombstoneMs: number): void =>
      this.#tombstones.add(holdId, status, this.#host.nowMs + tombstoneMs, this.#host.nowMs),
  } satisfies LockHost;

  constructor(options: { clock?: Clock } = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#start = this.#clock.now();
  }

  async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const lock = this.#lock(request.id);
    const reply = acquire(lock, this.#hostFor(request.process), request, terms);
    this.#keep(request.id, lock);
    // Each call has ended when it returns.
    if (reply.status === 'queued') return { ...reply, mayArriveLater: false };
    return terms.minFence === undefined ? reply : this.#raised(lock, reply, terms.minFence);
  }

  async renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return renew(this.#lock(request.id), this.#nowMs(), request, terms);
  }

  async release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    const lock = this.#lock(request.id);
    // This object was granted here, synchronously: no other call with it is in flight, and it can be forgotten.
    const isSettled = lock.holds.get(request.holdId)?.request === request;
    const reply = release(lock, this.#hostFor(request.process), request, isSettled ? forgotten : terms);
    this.#keep(request.id, lock);
    if (terms.announce && reply.status !== 'absent' && lock.holds.size === 0) {
      for (const process of this.#freedListeners) this.#send(process, { kind: 'freed', id: request.id });
    }
    return reply;
  }

  async transfer(from: HoldRequest, to: HoldRequest, terms: TransferTerms): Promise<TransferReply> {
    return transfer(this.#lock(from.id), this.#hostFor(undefined), from, to, terms);
  }

  async inspect(id: string): Promise<InspectReply> {
    return inspect(this.#lock(id), this.#nowMs());
  }

  async forceRelease(id: string, fence: number): Promise<boolean> {
    const lock = this.#lock(id);
    const isDone = forceRelease(lock, this.#hostFor(undefined), fence);
    this.#keep(id, lock);
    return isDone;
  }

  /** Lists the locks by name; a cursor is the name of the last one. */
  async list({ idPrefix, limit, cursor = '' }: ListRequest): Promise<ListReply> {
    const after = [...this.#locks.keys()].filter((id) => id.startsWith(idPrefix) && id > cursor).sort();
    const ids = after.slice(0, limit);
    const nowMs = this.#nowMs();
    const replies = ids.map((id) => ({ id, ...inspect(this.#lock(id), nowMs) }));
    const locks = replies.filter(({ holds, waiters }) => holds.length + waiters.length > 0);
    return { locks, cursor: after.length > limit ? ids.at(-1) : undefined, total: this.#locks.size };
  }

  async subscribe(process: string, listener: StoreListener, options: SubscribeOptions = {}): Promise<Unsubscribe> {
    this.#listeners.set(process, listener);
    if (options.freed) this.#freedListeners.add(process);
    return async () => {
      this.#listeners.delete(process);
      this.#freedListeners.delete(process);
    };
  }

  #lock(id: string): MemoryLock {
    return this.#locks.get(id) ?? this.#spare ?? new MemoryLock();
  }

  /** Keeps a lock while it has a hold or a waiter. */
  #keep(id: string, lock: MemoryLock): void {
    if (lock.isUnused) {
      this.#locks.delete(id);
      this.#spare = lock;
      return;
    }
    this.#locks.set(id, lock);
    if (lock === this.#spare) this.#spare = undefined;
  }

  #hostFor(caller: string | undefined): LockHost {
    const host = this.#host;
    host.nowMs = this.#nowMs();
    host.caller = caller;
    return host;
  }

  /** A repeated acquire raises the fence to this, if its hold is the only one (C24). */
  #raised(lock: MemoryLock, reply: AcquireReply, minFence: number): AcquireReply {
    const holder = lock.holds.oldest;
    if (reply.status !== 'granted' || holder === undefined || lock.holds.size > 1) return reply;
    lock.fence = Math.max(lock.fence, minFence);
    holder.fence = lock.fence;
    this.#lastFence = Math.max(this.#lastFence, lock.fence);
    return { ...reply, grant: lock.asGrant(holder) };
  }

  #send(process: string, message: StoreMessage): void {
    this.#outbox.send(() => this.#listeners.get(process)?.(message), message.kind === 'next');
  }

  #nextFence(least = 0): number {
    this.#lastFence = Math.max(this.#lastFence + 1, Math.floor(this.#host.nowMs * 1000), least);
    return this.#lastFence;
  }

  /** A clock that never steps: the wall clock at the start, and the monotonic time since then. */
  #nowMs(): number {
    return this.#start.wallMs + this.#clock.now().monoMs - this.#start.monoMs;
  }
}

const forgotten: ReleaseTerms = { tombstoneMs: 0 };
