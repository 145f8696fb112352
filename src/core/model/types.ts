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
  /** How long the grant lasts without renewal, 100 at least and `maxHoldMs` at most. Default 10 000. */
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
   * starves. An owner that writes may also read. An owner that reads may also write if it is the only reader; with other
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
   * empty for the root, and for all requests with a bare trace id, which are one owner. Nested holds share it. When a branch ends,
   * what it still holds passes to the branch around it.
   */
  readonly branch: string;
  /**
   * The fencing token: it rises with each change of the key's owner, and is equal on re-entry: it distinguishes strangers, not
   * branches of one trace. Readers that share the key
   * have the same; it rises when one of them becomes the writer. With permits it is greater than that of every hold that had
   * ended before, and says nothing about those at the same time. Store it with the data that the lock protects, and refuse
   * a write with a smaller one.
   */
  readonly fence: number;
  /** Aborted when the hold is lost: the lease ended, or the key changed hands. The reason is a `LockLostError`. */
  readonly signal: AbortSignal;
  /**
   * Whether the hold is neither released nor lost. It compares the lease with this process's clock, and makes no store call.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * await lock.run('order:42', async (hold) => {
   *   await charge('42', hold.signal);
   *   if (!hold.isHeld()) console.warn('order 42 was paid without its lock');
   * });
   * ```
   */
  isHeld(): boolean;
  /**
   * How many milliseconds of the lease are left, 0 when the hold is released or lost. It is never too long: it counts from before the
   * lock was asked for. Makes no store call.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * await lock.run('report', async (hold) => {
   *   if (hold.remainingMs() < 5_000) await hold.extend(30_000);
   *   await writeReport(hold.signal);
   * });
   * ```
   */
  remainingMs(): number;
  /**
   * Throws unless at least `minRemainingMs` milliseconds of the lease are left (default: more than 0). Call it right before a write.
   * Throws `LockLostError` if the hold is lost or has less time left, and `LockNotHeldError` after the release. Makes no store call.
   * It does not promise that the write arrives in time. Only the fence does, if the database compares it.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * await lock.run('stock:7', async (hold) => {
   *   hold.assertHeld(500); // at least half a second is left
   *   await db.query('UPDATE stock SET fence = $1 WHERE id = 7 AND fence <= $1', [hold.fence]);
   * });
   * ```
   */
  assertHeld(minRemainingMs?: number): void;
  /**
   * Makes the lease end at least `leaseMs` milliseconds from now. It never shortens the lease, and never passes `maxHoldMs`. Rejects
   * with `LockLostError` if the hold is lost, with `LockStoreError` if the store did not reply, with `LockNotHeldError` after the
   * release, and with `LockConfigError` for a lease that the store does not grant.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * await lock.run('report', async (hold) => {
   *   await hold.extend(60_000); // a step that blocks the event loop: no renewal can run
   *   await writeReport(hold.signal);
   * });
   * ```
   */
  extend(leaseMs: number): Promise<void>;
  /**
   * Keeps the hold until `promise` has settled, also past the end of its request or job. You can still call it right after you have
   * ended the response, in the same turn. If the promise rejects, a `warning` event reports it; nothing is thrown. Throws
   * `LockNotHeldError` if the hold was already released: the work then goes on without the lock. `run`, `runAll` and the end of `await
   * using` release the hold after the promise, and do not wait for that themselves. An explicit `release` does not wait for it.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * await using hold = await lock.acquire('order:42');
   * await charge('42');
   * hold.waitUntil(writeReport()); // the response need not wait for it
   * ```
   */
  waitUntil(promise: PromiseLike<unknown>): void;
  /**
   * Takes the hold out of its request or job, to hand it to another one. The end of the request or job doesn't release it, and no
   * one can enter the key until its lease expires. Resolves with a token: `resumeHold(token)` makes it a hold again, in any process.
   * Anyone who has the token can do that: treat it as a secret. It contains the key, encoded but not encrypted.
   *
   * Rejects with `LockConfigError` for bad options, if the request or job has further holds on the key, and if the store can't do it;
   * with `LockLostError` if the hold is lost; with `LockNotHeldError` after its release. The hold is released if the store did not
   * reply (`LockStoreError`), or if another request or job of its trace also holds the key (`LockConfigError`). After any other error
   * the hold stays as it was.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * export async function startExport(id: string) {
   *   const hold = await lock.acquire(`export:${id}`);
   *   const token = await hold.detach({ leaseMs: 600_000 });
   *   await db.query('INSERT INTO jobs (id, lock_token) VALUES ($1, $2)', [id, token]);
   * }
   * ```
   */
  detach(options: DetachOptions): Promise<string>;
  /**
   * Releases the hold. Of several holds that a request or job has on the key, the last release frees it in the store. You may call it
   * more than once: each call returns the same promise. Rejects with `LockLostError` if the key may have changed hands before, and
   * with `LockStoreError` if the store did not reply within `storeTimeoutMs`; the release is then tried again until the lease
   * expires.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * const hold = await lock.acquire('order:42');
   * try {
   *   await charge('42', hold.signal);
   * } finally {
   *   await hold.release();
   * }
   * ```
   */
  release(): Promise<void>;
}

/**
 * The holds of one `acquireAll`, as one hold. Each key has its own fence, and is detached separately: see
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
  /** The `instance` of the process that acquired it; undefined if its name has none. */
  readonly instance: string | undefined;
  /** Whether it belongs to no process: it was detached, and not resumed. */
  readonly isDetached: boolean;
  /** The last fence of the key: the same for all its holds. */
  readonly fence: number;
  readonly mode: HoldMode;
  /** Milliseconds until the lease ends, by the store's clock. */
  readonly remainingMs: number;
  /**
   * Milliseconds since the key changed hands, by the fence and the store's clock. Re-entry does not change it.
   * Readers that share the key have the time of the first one, holders of permits that of the newest one.
   */
  readonly heldMs: number;
}

/** A waiter, as the store sees it, in queue order. */
export interface WaiterInfo {
  readonly holdId: string;
  readonly traceId: string;
  readonly branch: string;
  /** The `instance` of its process; undefined if its name has none. */
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

/** The grant to take away, and details for the listeners of `forced`. */
export interface ForceReleaseOptions extends InspectOptions {
  /**
   * The fence of the grant that was looked at. If the key has another one by now, nothing happens. Default: whatever it
   * has now.
   */
  readonly fence?: number | undefined;
  /** The operator, up to 256 characters. */
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

/** The current request or job. */
export interface Trace {
  /** The id that the request or job was sent with, if the sender was trusted, or a new one. */
  readonly traceId: string;
  /**
   * The path below the trace of the request's or job's own branch: empty, unless a caller sent its branch or it is a job within
   * another. The branches of its holds begin with it.
   */
  readonly branch: string;
  /** Aborted when the client disconnects, the job is stopped, or the request or job ends. */
  readonly signal: AbortSignal;
  /** Whether the request or job has ended, with all work that was passed to `waitUntil`: it can lock nothing more. */
  readonly hasEnded: boolean;
}
