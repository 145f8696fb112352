import type { LockKey } from './key.ts';

/** Who may re-enter: the trace, this one request, or nobody. */
export type OwnerKind = 'trace' | 'request' | 'hold';

/** Readers share a lock with readers; a writer has it alone. */
export type LockMode = 'read' | 'write';

/** How one acquire behaves. All durations are milliseconds. */
export interface AcquireOptions {
  /** How long to wait for the key, then `LockTimeoutError`; `0` tries once, `Infinity` sets no limit. Default 10 000. */
  readonly waitMs?: number | undefined;
  /** How long the grant lasts without renewal, 10 at least and `maxHoldMs` at most. Default 30 000. */
  readonly leaseMs?: number | undefined;
  /** Whether the watchdog renews the lease while the hold lives; `false` is a fixed lease. Default true. */
  readonly renew?: boolean | undefined;
  /** How long a hold may live at most, renewals included; then it is lost. Default 300 000. */
  readonly maxHoldMs?: number | undefined;
  /** Gives up the wait when aborted, with a `LockAbortedError`. One that is already aborted refuses even a free key. */
  readonly signal?: AbortSignal | undefined;
  /** A namespace for keys, of 1 to 256 characters: the same key in two categories is two locks. Default: none. */
  readonly category?: string | undefined;
  /**
   * `'trace'` (default): every scope of the trace re-enters. `'request'`: only this scope does, so that a called service
   * that locks the key waits. `'hold'`: nobody does, so that branches of one request exclude each other.
   */
  readonly owner?: OwnerKind | undefined;
  /**
   * `'write'` (default) excludes every other owner; `'read'` shares the key with readers. They stand in one queue: neither
   * starves. Who writes may read; the only owner that reads may write, one that reads beside others gets a
   * `DeadlockError` at once.
   */
  readonly mode?: LockMode | undefined;
  /**
   * Whose turn comes first, -100 to 100; default 0. Each degree counts like ten seconds of waiting, so that nobody is
   * overtaken for ever.
   */
  readonly priority?: number | undefined;
}

/** `tryAcquire` takes what `acquire` takes, but for the waiting. */
export type TryOptions = Omit<AcquireOptions, 'waitMs' | 'signal'>;

/** One successful acquire that is not yet released. */
export interface Hold extends AsyncDisposable {
  /** The key, as the application wrote it. */
  readonly key: string;
  /** Who may re-enter: the trace id, or a random id of the request or the hold, as the `owner` option says. */
  readonly owner: string;
  /**
   * The fencing token: strictly rises with each change of the key's owner, and is equal on re-entry. Readers who share the
   * key have the same; it rises when one of them becomes the writer. Write it beside what the lock protects, and refuse a
   * write with a smaller one.
   */
  readonly fence: number;
  /** Aborted with a `LockLostError` as its reason, when the lease ended or the key changed hands. */
  readonly signal: AbortSignal;
  /** Whether the hold is neither released nor lost, by the local deadline; no store call. */
  isHeld(): boolean;
  /** Milliseconds until the local deadline, 0 when not held. Conservative: counted from before the grant was asked for. */
  remainingMs(): number;
  /**
   * Throws unless the hold has `minRemainingMs` left (default: anything at all); call it right before a write.
   * Throws `LockLostError` when the lease is lost or has less left, `LockNotHeldError` after the release.
   */
  assertHeld(minRemainingMs?: number): void;
  /**
   * Makes the lease end no earlier than `leaseMs` from now, in milliseconds; it never shortens it, and never reaches
   * beyond `maxHoldMs`. Rejects with `LockLostError` when the hold is lost, `LockStoreError` when the store did not answer,
   * `LockNotHeldError` after the release, and `LockConfigError` for a lease that the store does not grant.
   */
  extend(leaseMs: number): Promise<void>;
  /**
   * Postpones the automatic release of this hold, at the end of its request or job, until `promise` has settled. Also
   * counts when it is called in the same turn in which the response was ended. A rejection is reported as a `warning`
   * event, never thrown. Throws `LockNotHeldError` where the hold was released already: the work goes on without the lock.
   */
  waitUntil(promise: PromiseLike<unknown>): void;
  /**
   * Gives the hold back; with the scope's last one on the key, the store hears of it. Safe to call more than once: every
   * call answers the same. Rejects with `LockLostError` when the key had changed hands before, and with `LockStoreError`
   * when the store did not answer in `storeTimeoutMs`; the release is then tried again until the lease is over.
   */
  release(): Promise<void>;
}

/**
 * The holds of one `acquireAll`, as one hold. Fences and owners are each key's own: they are in `holds`, and absent here.
 *
 * It is held while all of its holds are: `signal` is aborted with the first loss, and `remainingMs` is that of the
 * shortest. `assertHeld`, `extend`, `waitUntil` and `release` go for all; one that fails does not keep the others from
 * theirs. `extend` and `release` then reject with a `LockLostError` if any was lost, else with the first error; where
 * several were lost, or the store failed for several, `cause` is an `AggregateError` of all.
 */
export interface BatchHold extends Omit<Hold, 'fence' | 'owner'> {
  /** Its keys, for logs: `'a, b'`. No key that could be locked or released. */
  readonly key: string;
  /** Its holds by key, as strings, in the order in which the caller named them. */
  readonly holds: ReadonlyMap<string, Hold>;
}

/** What the store knows of a key. */
export interface LockInfo {
  readonly key: string;
  /** The namespace of the key; undefined without one, and of a key that is listed by its hash. */
  readonly category: string | undefined;
  readonly holds: readonly HoldInfo[];
  readonly waiters: readonly WaiterInfo[];
}

/** A hold, as the store sees it. */
export interface HoldInfo {
  readonly holdId: string;
  readonly owner: string;
  readonly fence: number;
  readonly mode: LockMode;
  /** Milliseconds until the lease ends, by the store's clock. */
  readonly remainingMs: number;
  /**
   * Milliseconds since the key changed hands, by the store's clock, as the fence tells it. Re-entry does not change it.
   * Readers that share the key have the time of the first one.
   */
  readonly heldMs: number;
}

/** A waiter, as the store sees it, in queue order. */
export interface WaiterInfo {
  readonly holdId: string;
  readonly owner: string;
  readonly mode: LockMode;
  readonly priority: number;
  /** Milliseconds since it was queued, by the store's clock. */
  readonly waitedMs: number;
}

/** Which locks to list. */
export interface ListOptions {
  /** What the keys begin with. Default: anything. */
  readonly prefix?: string | undefined;
  /** Only the keys of this namespace. Default: the keys of all namespaces, and those without one. */
  readonly category?: string | undefined;
  /** About how many names the store looks at for one page, 1 to 1000. Default 100. */
  readonly limit?: number | undefined;
  /** What the page before said. Default: the first page. */
  readonly cursor?: string | undefined;
}

/** Which lock to look at. */
export interface InspectOptions {
  /** The namespace of the key. Default: none. */
  readonly category?: string | undefined;
}

/** Which grant to take away, and what to tell the listeners of `forced`. */
export interface ForceReleaseOptions extends InspectOptions {
  /**
   * The fence of the grant that was looked at. If the key has another one by now, nothing happens. Default: whatever it
   * has now.
   */
  readonly fence?: number | undefined;
  /** Who does it, up to 256 characters. */
  readonly by?: string | undefined;
  /** Why, up to 1,000 characters. */
  readonly reason?: string | undefined;
}

/** A page of locks. It may be empty, and still not be the last. */
export interface LockPage {
  readonly locks: readonly LockInfo[];
  /** What asks for the next page; undefined after the last. */
  readonly cursor: string | undefined;
}

/** The lock on one key. It binds neither scope nor `Locks`: both are read at each call. */
export interface Lock {
  readonly key: string;
  /**
   * Takes the lock for the current scope, or re-enters it without a store call when the scope already holds it.
   * Rejects with `LockTimeoutError`, `LockAbortedError`, `LockLimitError`, `LockLostError` (re-entry on a lost hold,
   * or one lost before the reader became the writer), `DeadlockError`, `LockScopeError`, `LockStoreError`,
   * `LocksClosedError`, or `LockConfigError` for bad options; nothing more is held or queued then.
   */
  acquire(options?: AcquireOptions): Promise<Hold>;
  /** As `acquire`, but answers null at once when somebody else holds the key or stands in its queue. */
  tryAcquire(options?: TryOptions): Promise<Hold | null>;
  /**
   * Acquires, runs `routine` and releases, whatever it does. The routine's result or error is never masked by the
   * release's; a hold that was lost while the routine went well rejects with `LockLostError`, the result in `value`.
   */
  run<T>(routine: (hold: Hold) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  /** Releases the current scope's newest hold on the key; rejects with `LockNotHeldError` when there is none. */
  release(): Promise<void>;
  /** Whether anybody holds the key, by the store. */
  isLocked(): Promise<boolean>;
  /** Whether the current scope holds the key; no store call. */
  isHeld(): boolean;
  /** How many holds the current scope has on the key; no store call. */
  holdCount(): number;
  /** Who holds the key and who waits for it, by the store. Needs no scope. */
  inspect(): Promise<LockInfo>;
  /**
   * Takes the lock from whoever holds it now; their holds are lost, and say so. Needs no scope. Answers false when
   * nobody held it, or when it had changed hands in between.
   */
  forceRelease(): Promise<boolean>;
}

/** The methods of `Lock` that most code needs, by key, and two for several keys. They work when destructured. */
export interface LockFunctions {
  acquire(key: LockKey, options?: AcquireOptions): Promise<Hold>;
  tryAcquire(key: LockKey, options?: TryOptions): Promise<Hold | null>;
  run<T>(key: LockKey, routine: (hold: Hold) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  release(key: LockKey, options?: Pick<AcquireOptions, 'category'>): Promise<void>;
  /**
   * Takes all of the keys, or none, as one hold; keys that are free cost one round trip together. They are taken in one
   * order whatever the caller's, each once, so that batches never wait for each other in a circle. `waitMs` is for all of
   * them. Rejects as `acquire` does, `key` being the one that could not be had, and with `LockKeyError` for an empty list.
   */
  acquireAll(keys: readonly LockKey[], options?: AcquireOptions): Promise<BatchHold>;
  /** As `run`, with all of the keys held; a loss of any rejects with `LockLostError`. */
  runAll<T>(
    keys: readonly LockKey[],
    routine: (hold: BatchHold) => T | PromiseLike<T>,
    options?: AcquireOptions,
  ): Promise<T>;
}

/** What the current request or job is. */
export interface Trace {
  /** The id that the request or job came with, or a new one. */
  readonly traceId: string;
  /** Who may re-enter, unless an acquire's `owner` option says otherwise: the trace id. */
  readonly owner: string;
  /** Aborted when the client has left, the job was told to stop, or the scope has ended. */
  readonly signal: AbortSignal;
  /** Whether the request or job is over, with all that `waitUntil` postponed: it can lock nothing more. */
  readonly isOver: boolean;
}
