import type { Clock, Instant } from '../base/clock.ts';
import { inBackground } from '../base/safely.ts';
import { hasCode } from '../model/errors/by-code.ts';
import { LockStoreError } from '../model/errors/failures.ts';
import { LockConfigError, LockKeyError } from '../model/errors/mistakes.ts';
import type { Events } from '../model/events.ts';
import { type LockName, pingName } from '../model/key.ts';
import type { LocksSettings } from '../model/options.ts';
import type {
  AcquireReply,
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
  TransferReply,
  TransferTerms,
  Unsubscribe,
} from '../model/store.ts';
import { CallDeadlines } from './call-deadlines.ts';
import type { AcquireCall, CallTarget, CallTime, NamedLock, OnClaims, ReleaseCallbacks } from './calls.ts';
import { Outage } from './outage.ts';

/**
 * All calls of one `Locks` to its store. Each call has a deadline, and is made only while the store has a connection. The
 * error of a failed call names the key: a store knows a lock by its encoded name alone. Emits one `storeError` event when a
 * call that the application waits for fails.
 *
 * Acquires, renewals and releases take callbacks. With promises these files had 86 lines less, but in memory a `lock.run` took 1.06
 * of the CPU and a hand-off to one of 32 waiters 1.24; a failure by timeout continued in the async context of a request; and the
 * next holder got its grant before the event `released`.
 */
export class StoreClient {
  readonly #store: LockStore;
  readonly #events: Events;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #maxWaiters: number;
  readonly #deadlines: CallDeadlines;
  readonly outage: Outage;
  /** How long a process counts as live after a call about a key, in milliseconds. */
  readonly livenessMs: number;
  /** The store's edges, with a deadline for each call; unusable if the store has none. Callers report failures. */
  readonly edges: EdgeStore;
  /** The one listener for claims: any reply may carry them. Set by the pending acquires. */
  onClaims: OnClaims = () => undefined;

  constructor(store: LockStore, events: Events, clock: Clock, settings: LocksSettings) {
    this.#store = store;
    this.#events = events;
    this.#clock = clock;
    this.#timeoutMs = settings.storeTimeoutMs;
    this.#maxWaiters = settings.maxWaitersPerKey;
    this.livenessMs = 3 * settings.pollMs + settings.storeTimeoutMs;
    this.#deadlines = new CallDeadlines(clock);
    this.outage = new Outage(store.link, events, clock, settings.storeTimeoutMs);
    this.edges = this.#edges(store.edges as EdgeStore);
  }

  get capabilities(): StoreCapabilities {
    return this.#store.capabilities;
  }

  get canList(): boolean {
    return this.#store.list !== undefined;
  }

  /** Sends an acquire. A poll is the same call, sent again. Emits no event if it fails. */
  acquire(
    call: AcquireCall,
    { sent, timeoutMs }: CallTime,
    onReply: (reply: AcquireReply) => void,
    onError: (error: LockStoreError) => void,
  ): void {
    const { request, leaseMs, waitMs, newest } = call;
    const terms = { leaseMs, queue: waitMs > 0, maxWaiters: this.#maxWaiters, livenessMs: this.livenessMs, newest };
    this.#start(
      'acquire',
      sent,
      timeoutMs,
      () => this.#store.acquire(request, terms),
      (reply: AcquireReply) => {
        inBackground(this.onClaims(request.id, sent, reply));
        onReply(reply);
      },
      (failure) => onError(this.#failed(call, failure)),
    );
  }

  /** Sends a renewal. Emits no event if it fails. A late reply may follow `onError`. */
  renew(
    target: CallTarget,
    terms: RenewTerms,
    { sent, timeoutMs }: CallTime,
    onReply: (reply: RenewReply) => void,
    onError: (error: LockStoreError) => void,
  ): void {
    const call = (): Promise<RenewReply> => this.#store.renew(target.request, terms);
    this.#start('renew', sent, timeoutMs, call, onReply, (failure) => onError(this.#failed(target, failure, true)));
  }

  /** Sends a release. Emits no event if it fails. A reply after `onError` still wakes the waiters that it grants. */
  release(
    target: CallTarget,
    terms: ReleaseTerms,
    sent: Instant,
    { onStatus, onSettled, onError }: ReleaseCallbacks,
  ): void {
    const { request } = target;
    let hasFailed = false;
    const call = (): Promise<ReleaseReply> => this.#store.release(request, terms);
    const replied = (reply: ReleaseReply): void => {
      if (!hasFailed) onStatus(reply.status, reply.mayHaveArrivedBefore === true);
      // The next holder continues first, since others wait for it: its code runs one microtask after its grant.
      const delivered = this.onClaims(request.id, sent, reply);
      if (hasFailed) return;
      if (reply.claims.length > 0) void Promise.resolve(delivered).then(onSettled);
      else onSettled();
    };
    this.#start('release', sent, this.#timeoutMs, call, replied, (failure) => {
      hasFailed = true;
      onError(this.#failed(target, failure, true));
    });
  }

  /**
   * Passes a hold on to another hold id. The store has the capability. `isHeld`: it is the caller's hold. Rejects with a
   * `LockStoreError`.
   */
  transfer(
    lock: NamedLock,
    from: HoldRequest,
    to: HoldRequest,
    terms: TransferTerms,
    { isHeld, sent }: { readonly isHeld: boolean; readonly sent?: Instant },
  ): Promise<TransferReply> {
    const call = (): Promise<TransferReply> => (this.#store as Required<LockStore>).transfer(from, to, terms);
    return this.#run('transfer', lock, call, { isHeld, sent });
  }

  /** Rejects with a `LockStoreError`. */
  inspect(name: LockName): Promise<InspectReply> {
    return this.#run('inspect', name, () => this.#store.inspect(name.id));
  }

  /** Inspects a lock for the details of an error. Emits no event if it fails. */
  look(id: string, timeoutMs: number): Promise<InspectReply> {
    return this.#send('inspect', this.#clock.now(), timeoutMs, () => this.#store.inspect(id));
  }

  /** Reads a lock that nobody holds. Rejects with a `LockStoreError`. */
  async ping(timeoutMs: number = this.#timeoutMs): Promise<void> {
    await this.#run('ping', undefined, () => this.#store.inspect(pingName), { timeoutMs });
  }

  /** Rejects with a `LockStoreError`, and with `LockConfigError` if the store can't name its keys. */
  async list(request: ListRequest): Promise<ListReply> {
    if (!this.canList) {
      throw new LockConfigError('Expected a store that can list its locks, got one that lacks `list`');
    }
    return this.#run('list', undefined, () => (this.#store as Required<LockStore>).list(request));
  }

  /** Rejects with a `LockStoreError`. */
  forceRelease(name: LockName, fence: number): Promise<boolean> {
    return this.#run('forceRelease', name, () => this.#store.forceRelease(name.id, fence));
  }

  /** Asks for the stream of messages. Rejects as the store does: the caller knows how long it may wait. */
  async subscribe(process: string, listener: StoreListener): Promise<Unsubscribe> {
    return this.#store.subscribe(process, listener);
  }

  /** Waits for a promise of the store, for `timeoutMs` at most. */
  within<T>(operation: string, timeoutMs: number, promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#deadlines.start(operation, this.#clock.now(), timeoutMs, () => promise, resolve, reject);
    });
  }

  /** Emits the failure of a call that the application waits for. */
  report(operation: string, lock: NamedLock | undefined, error: Error): void {
    this.#events.emit('storeError', { operation, key: lock?.key, category: lock?.category, error });
  }

  /** Emits a failure in the background, unless an outage is the reason, which has its own event. Returns whether it did. */
  reportBackground(operation: string, lock: NamedLock | undefined, error: Error): boolean {
    const isNews = this.outage.isConnected && !this.outage.isDown;
    if (isNews) this.report(operation, lock, error);
    return isNews;
  }

  close(): void {
    this.#deadlines.close();
    this.outage.close();
  }

  async #run<T>(
    operation: string,
    lock: NamedLock | undefined,
    call: () => Promise<T>,
    { isHeld, sent = this.#clock.now(), timeoutMs = this.#timeoutMs }: RunOptions = {},
  ): Promise<T> {
    try {
      return await this.#send(operation, sent, timeoutMs, call);
    } catch (failure) {
      const error = this.#failed(lock, failure as LockStoreError, isHeld);
      const refused = badKey(error);
      if (refused === undefined) this.report(operation, lock, error);
      throw refused ?? error;
    }
  }

  #send<T>(operation: string, sent: Instant, timeoutMs: number, call: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#start(operation, sent, timeoutMs, call, resolve, reject);
    });
  }

  /** Makes a call. Without a connection it waits for one, or fails at once if there is an outage; then it is never made. */
  #start<T>(
    operation: string,
    sent: Instant,
    timeoutMs: number,
    call: () => Promise<T>,
    onReply: (reply: T) => void,
    onError: (error: LockStoreError) => void,
  ): void {
    const { outage } = this;
    const replied = (reply: T): void => {
      outage.onReply();
      onReply(reply);
    };
    if (outage.isConnected) {
      this.#deadlines.start(operation, sent, timeoutMs, call, replied, onError);
      return;
    }
    let isMade = false;
    let hasFailed = false;
    const callLater = async (): Promise<T> => {
      await outage.connected();
      if (hasFailed) throw outage.notSent(operation);
      isMade = true;
      return call();
    };
    this.#deadlines.start(operation, sent, timeoutMs, callLater, replied, (failure) => {
      hasFailed = true;
      onError(isMade ? failure : outage.notSent(operation));
    });
  }

  #edges(edges: EdgeStore): EdgeStore {
    const call = <T>(run: () => Promise<T>): Promise<T> => this.#send('edges', this.#clock.now(), this.#timeoutMs, run);
    return {
      set: (owner, edge, ttlMs) => call(() => edges.set(owner, edge, ttlMs)),
      clear: (owner, edge) => call(() => edges.clear(owner, edge)),
      of: (owner) => call(() => edges.of(owner)),
      wait: (request) => call(() => edges.wait(request)),
    };
  }

  /** Makes the error that callers see. `isHeld`: they hold the lock. */
  #failed(lock: NamedLock | undefined, failure: LockStoreError, isHeld = false): LockStoreError {
    this.outage.onFailure(failure);
    const { key, category } = lock ?? {};
    const { message, outcome, cause = this.outage.cause } = failure;
    const details = { key, category, outcome, isHeld };
    return new LockStoreError(message, cause === undefined ? details : { ...details, cause });
  }
}

interface RunOptions {
  readonly isHeld?: boolean | undefined;
  readonly sent?: Instant | undefined;
  readonly timeoutMs?: number | undefined;
}

/** The error of a call whose key the store can't keep, which is no failure of the store. Undefined for other errors. */
export function badKey({ cause, key, category }: LockStoreError): LockKeyError | undefined {
  if (!hasCode(cause, 'ERR_LOCK_KEY')) return undefined;
  return new LockKeyError(cause.message, { key, category, cause: cause.cause });
}
