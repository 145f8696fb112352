import type { LockKey } from './key.ts';

/** Who may re-enter a hold: nested calls, also over services; nested calls of this one request or job; or nobody (`false`). */
export type Reentrant = 'trace' | 'request' | false;

/** Readers share a lock with other readers; a writer has it alone. */
export type LockMode = 'read' | 'write';

/** What a hold is for: to read, to write, or as one of the key's permits. */
export type HoldMode = LockMode | 'permit';

/**
 * How one acquire behaves. All durations are whole milliseconds. `waitMs`, `leaseMs`, `renew`, `maxHoldMs` and `reentrant` default to
 * those of the `Locks`, for which the defaults are named here.
 */
export interface AcquireOptions {
  /** How long to wait for the key, then `LockTimeoutError`; `0` tries once, `Infinity` sets no limit. Default 15 000. */
  readonly waitMs?: number | undefined;
  /** How long the grant lasts without renewal, 10 at least and `maxHoldMs` at most. Default 10 000. */
  readonly leaseMs?: number | undefined;
  /** Whether the watchdog renews the lease while the hold lives; `false` is a fixed lease. Default true. */
  readonly renew?: boolean | undefined;
  /** How long a hold may live at most, renewals included; then it is lost. Default 300 000. */
  readonly maxHoldMs?: number | undefined;
  /**
   * Ends the wait when aborted, with a `LockAbortedError`. If it is already aborted, even a free key is refused. Once the lock
   * is granted it has no effect: it neither stops a routine nor releases the hold.
   */
  readonly signal?: AbortSignal | undefined;
  /** A namespace for keys, of 1 to 256 characters: the same key in two categories is two locks. Default: none. */
  readonly category?: string | undefined;
  /**
   * Who may re-enter the hold. `'trace'` (default, unless the `Locks` has another): nested calls, also those of called services.
   * `'request'`: only nested calls of this request; a called service that locks the key waits. `false`: nobody. Branches of one
   * request exclude each other in any case.
   */
  readonly reentrant?: Reentrant | undefined;
  /**
   * `'write'` (default) excludes every other branch; `'read'` shares the key with readers. Both wait in one queue: neither
   * starves. An owner that writes may also read. An owner that reads may also write if it is the only reader; beside other
   * readers it gets a `DeadlockError` at once.
   */
  readonly mode?: LockMode | undefined;
  /**
   * How many branches may hold the key at once, 1 to 1000: each has one permit, which nested calls use. It takes the place of
   * `mode`. Give all acquires of the key the same number: if they differ, the least number of all holders and the newcomer
   * counts. A nested call with another number than the hold around it, or with none, is a `LockConfigError`. Default: none.
   */
  readonly permits?: number | undefined;
  /**
   * A waiter of higher priority goes first, -100 to 100; default 0. Each degree counts like ten seconds of waiting, so that
   * no waiter is overtaken forever.
   */
  readonly priority?: number | undefined;
}

/** The options of `tryAcquire`: those of `acquire`, without the ones about waiting. */
export type TryOptions = Omit<AcquireOptions, 'waitMs' | 'signal'>;

/** The options of `whenFree`: how long to wait, and for what. */
export type WhenFreeOptions = Pick<AcquireOptions, 'waitMs' | 'signal' | 'category' | 'mode' | 'permits' | 'priority'>;

/** How long a hold lasts without a process. */
export interface DetachOptions {
  /** From now on, in milliseconds. Nothing renews it, and `maxHoldMs` does not count. */
  readonly leaseMs: number;
}

/** One successful acquire that is not yet released. */
export interface Hold extends AsyncDisposable {
  /** The key, as the application wrote it. */
  readonly key: string;
  /** The id of the trace that holds it. */
  readonly traceId: string;
  /**
   * The branch for which the store has the lock, as `inspect` and events name it: its path below the trace, as `1/9f3k`. It is
   * empty for the root, and for all branches of a bare trace id, which are one owner. Nested holds share it. When a branch ends,
   * what it still holds passes to the branch around it.
   */
  readonly branch: string;
  /**
   * The fencing token: it rises with each change of the key's owner, and is equal on re-entry: it tells strangers apart, not
   * branches of one trace. Readers that share the key
   * have the same; it rises when one of them becomes the writer. With permits it is greater than that of every hold that had
   * ended before, and says nothing about those at the same time. Store it beside the data that the lock protects, and refuse
   * a write with a smaller one.
   */
  readonly fence: number;
  /** Aborted when the hold is lost: the lease ended, or the key changed hands. The reason is a `LockLostError`. */
  readonly signal: AbortSignal;
  /** Whether the hold is neither released nor lost, by the local deadline. No store call. */
  isHeld(): boolean;
  /** Milliseconds until the local deadline, 0 when not held. Conservative: counted from before the grant was asked for. */
  remainingMs(): number;
  /**
   * Throws unless the hold has `minRemainingMs` left (default: more than 0). Call it right before a write. Throws
   * `LockLostError` if the lease is lost or has less left, `LockNotHeldError` after the release. No store call. It does not
   * promise that the write comes in time: only the fence does, if the database compares it.
   */
  assertHeld(minRemainingMs?: number): void;
  /**
   * Makes the lease end no earlier than `leaseMs` from now, in milliseconds; it never shortens it, and never reaches
   * beyond `maxHoldMs`. Rejects with `LockLostError` if the hold is lost, `LockStoreError` if the store did not reply,
   * `LockNotHeldError` after the release, and `LockConfigError` for a lease that the store does not grant.
   */
  extend(leaseMs: number): Promise<void>;
  /**
   * Postpones the automatic release of this hold, at the end of its request or job, until `promise` has settled. It still
   * works synchronously after the response was ended. A rejection is reported as a `warning` event, never thrown. Throws
   * `LockNotHeldError` if the hold was already released: the work goes on without the lock.
   */
  waitUntil(promise: PromiseLike<unknown>): void;
  /**
   * Takes the hold out of its scope: it is not released at the end of the request or job, and nobody can enter the key until
   * its lease is over. Resolves with a token, with which `resumeHold` makes it a hold of another scope, in any process. Anyone
   * who has the token may do so: treat it as a secret. It names the key, encoded and not encrypted.
   *
   * Rejects with `LockConfigError` for bad options, if the scope has further holds on the key, and if the store can't do it;
   * with `LockLostError` if the hold is lost; with `LockNotHeldError` after its release. The hold is
   * released if the store did not reply (`LockStoreError`), or if another scope of its owner holds the key as well
   * (`LockConfigError`). After the other errors it stays as it was.
   */
  detach(options: DetachOptions): Promise<string>;
  /**
   * Releases the hold. The last release of the scope on the key is sent to the store. Safe to call more than once: every
   * call returns the same promise. Rejects with `LockLostError` if the key may have changed hands before, and with
   * `LockStoreError` if the store did not reply in `storeTimeoutMs`; the release is then tried again until the lease ends.
   */
  release(): Promise<void>;
}

/**
 * The holds of one `acquireAll`, as one hold. Each key has a fence of its own, and is detached by itself: see
 * `holds`.
 *
 * It is held while all of its holds are: `signal` is aborted with the first loss, and `remainingMs` is that of the
 * shortest lease. `assertHeld`, `extend`, `waitUntil` and `release` act on all holds; a failure of one does not stop the
 * others. `extend` and `release` then reject with a `LockLostError` if any was lost, else with the first error. If several
 * were lost, or the store failed for several, `cause` is an `AggregateError` of all.
 */
export interface BatchHold extends Omit<Hold, 'fence' | 'traceId' | 'branch' | 'detach'> {
  /** Its keys, for logs: `'a, b'`. It is not a key that can be locked. */
  readonly key: string;
  /** Its holds by key, in the order in which the caller named them. */
  readonly holds: ReadonlyMap<string, Hold>;
}

/** The holders and waiters of a key, over all processes, at one moment. No decision about the lock should depend on it. */
export interface LockInfo {
  /** The key, as the application wrote it; its hash, if it is listed by that. */
  readonly key: string;
  /** The namespace of the key; undefined without one, and of a key that is listed by its hash. */
  readonly category: string | undefined;
  /** The permits of the key; undefined if it has none, or if nobody holds it or waits for it. */
  readonly permits: PermitsInfo | undefined;
  /** The holders; of very many, the first 1,000. */
  readonly holds: readonly HoldInfo[];
  /** The waiters, in the order of their turns; of very many, the first 1,000. */
  readonly waiters: readonly WaiterInfo[];
}

/** The permits of a key. */
export interface PermitsInfo {
  /** How many there are. */
  readonly limit: number;
  /** How many branches have one. */
  readonly held: number;
}

/** A hold, as the store sees it. */
export interface HoldInfo {
  /** The random name of the hold, as in events. */
  readonly holdId: string;
  /**
   * The id of the trace that holds it; undefined if it is detached. A trusted caller that has it can re-enter: it is for
   * operators, never for clients.
   */
  readonly traceId: string | undefined;
  /** The path of its branch below the trace, as `1/9f3k`; empty for the root. */
  readonly branch: string;
  /** The `instance` of the process that asked for it; undefined if its name does not say. */
  readonly instance: string | undefined;
  /** Whether it belongs to no process: it was detached, and not resumed. */
  readonly isDetached: boolean;
  /** The last fence of the key: the same for all its holds. */
  readonly fence: number;
  readonly mode: HoldMode;
  /** Milliseconds until the lease ends, by the store's clock. */
  readonly remainingMs: number;
  /**
   * Milliseconds since the key changed hands, by the store's clock, as the fence tells it. Re-entry does not change it.
   * Readers that share the key have the time of the first one, holders of permits that of the newest one.
   */
  readonly heldMs: number;
}

/** A waiter, as the store sees it, in queue order. */
export interface WaiterInfo {
  readonly holdId: string;
  readonly traceId: string;
  readonly branch: string;
  /** The `instance` of its process; undefined if its name does not say. */
  readonly instance: string | undefined;
  readonly mode: HoldMode;
  readonly priority: number;
  /** Milliseconds since it was queued, by the store's clock. */
  readonly waitedMs: number;
}

/** Which locks to list. */
export interface ListOptions {
  /** Lists keys that begin with this. Default: all keys. */
  readonly prefix?: string | undefined;
  /** Only the keys of this namespace. Default: the keys of all namespaces, and those without one. */
  readonly category?: string | undefined;
  /** About how many names the store reads for one page, 1 to 1000. Default 100. */
  readonly limit?: number | undefined;
  /** The cursor of the page before. Default: the first page. */
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
  /** The locks whose record a later version of the package wrote, in a format that this one does not know: ask that version. */
  readonly unreadable: readonly Pick<LockInfo, 'key' | 'category'>[];
  /** Asks for the next page; undefined after the last. */
  readonly cursor: string | undefined;
}

/** The lock on one key. It is bound to no scope and no `Locks`: both are read at each call. */
export interface Lock {
  readonly key: string;
  /**
   * Takes the lock for the current branch, or re-enters it if that branch or one around it holds it: without a store call, unless
   * a called service may have the key as well. Calls in one branch re-enter each other, also at the same time: use `run` for
   * parallel work. A hold that is not released when its branch ends passes to the branch around it.
   * Rejects with `LockTimeoutError`, `LockAbortedError`, `LockLimitError`, `LockLostError` (re-entry on a lost hold,
   * or one lost before the reader became the writer), `DeadlockError`, `LockScopeError`, `LockStoreError`,
   * `LocksClosedError`, or `LockConfigError` for bad options; nothing more is held or queued then.
   */
  acquire(options?: AcquireOptions): Promise<Hold>;
  /**
   * As `acquire`, but returns null at once if another owner holds the key or waits for it, another branch of the same request
   * among them. Rejects as `acquire` does, except for the errors that end a wait.
   */
  tryAcquire(options?: TryOptions): Promise<Hold | null>;
  /**
   * Acquires, runs `routine` in a branch of its own, and releases in any case. Calls within the routine re-enter; other branches
   * of the same request wait. An error of the release never masks the routine's result or error.
   * If the hold was lost while the routine succeeded, it rejects with `LockLostError`; `value` is the routine's result.
   * Rejects as `acquire` does if the lock is not granted; the routine is not called then. A lost lock does not stop the
   * routine: give `hold.signal` to what it calls.
   */
  run<T>(routine: (hold: Hold) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  /**
   * Resolves when nobody holds the key; with `mode: 'read'`, when nobody holds it to write; with `permits`, when one is free.
   * It waits in the queue for its turn, behind those that waited before. It promises nothing for the next moment: another owner may have the key by then.
   * To use the key, acquire it. Needs no scope. It re-enters nothing: in a request that holds the key, it waits for that request's own release.
   * Rejects as `acquire` does: with `LockTimeoutError` after `waitMs`.
   */
  whenFree(options?: Omit<WhenFreeOptions, 'category'>): Promise<void>;
  /**
   * Releases the newest hold on the key of the current branch and those around it, never that of another branch. Rejects with
   * `LockNotHeldError` if there is none, with `LockScopeError` outside a scope, and as `hold.release` does.
   */
  release(): Promise<void>;
  /**
   * Whether anybody holds the key, the caller too. Asks the store. Needs no scope. Rejects with `LockStoreError`. It may have changed by
   * the time it resolves: to use the key, acquire it.
   */
  isLocked(): Promise<boolean>;
  /** Whether the current branch, or one around it, holds the key. No store call. */
  isHeld(): boolean;
  /** How many holds the current branch and those around it have on the key. No store call. */
  holdCount(): number;
  /** The holders and waiters of the key. Asks the store. Needs no scope. Rejects with `LockStoreError`. */
  inspect(): Promise<LockInfo>;
  /**
   * Takes the lock from its current holders; their holds are lost, and their signals are aborted. Needs no scope. Returns
   * false if no one held it, or if it changed hands in between. Rejects with `LockStoreError`. It does not stop what the
   * holders do: only the fence refuses their late writes.
   */
  forceRelease(): Promise<boolean>;
}

/**
 * The most used methods of `Lock`, by key, and two for several keys: `lock.run(key, …)` is `getLock(key).run(…)`. They work when
 * destructured. They also reject with `LockKeyError` for a key that is empty, too long, or no key.
 */
export interface LockFunctions {
  acquire(key: LockKey, options?: AcquireOptions): Promise<Hold>;
  tryAcquire(key: LockKey, options?: TryOptions): Promise<Hold | null>;
  run<T>(key: LockKey, routine: (hold: Hold) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  whenFree(key: LockKey, options?: WhenFreeOptions): Promise<void>;
  release(key: LockKey, options?: Pick<AcquireOptions, 'category'>): Promise<void>;
  /**
   * Takes all of the keys, or none, as one hold. Free keys cost one round trip together. The keys are sorted, and each is
   * taken once, so that batches never wait for each other in a cycle. `waitMs` is for all of them. Rejects as `acquire`
   * does, with `key` naming the key that could not be had, and with `LockKeyError` for an empty list.
   */
  acquireAll(keys: readonly LockKey[], options?: AcquireOptions): Promise<BatchHold>;
  /** As `run`, with all of the keys held; a loss of any rejects with `LockLostError`. */
  runAll<T>(
    keys: readonly LockKey[],
    routine: (hold: BatchHold) => T | PromiseLike<T>,
    options?: AcquireOptions,
  ): Promise<T>;
}

/** The current request or job. */
export interface Trace {
  /** The id that the request or job came with, if its sender was trusted, or a new one. */
  readonly traceId: string;
  /**
   * The path below the trace of the request's or job's own branch: empty, unless a caller sent its branch or it is a job within
   * another. The branches of its holds begin with it.
   */
  readonly branch: string;
  /** Aborted when the client has disconnected, the job was told to stop, or the scope has ended. */
  readonly signal: AbortSignal;
  /** Whether the request or job is over, with all work that `waitUntil` was given: it can lock nothing more. */
  readonly isOver: boolean;
}
