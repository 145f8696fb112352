import cluster from 'node:cluster';
import threads from 'node:worker_threads';
import { CallSites } from '../base/call-site.ts';
import { type Clock, systemClock, within } from '../base/clock.ts';
import { processState, warnOnce } from '../base/process-state.ts';
import { onFault } from '../base/safely.ts';
import { inspectAsJson } from '../base/shown.ts';
import type { StoreAccess } from '../client/access.ts';
import { HoldTimes } from '../client/hold-times.ts';
import { Releases } from '../client/releases.ts';
import { StoreClient } from '../client/store-client.ts';
import { Deadlocks } from '../deadlock/deadlock.ts';
import { GrantRegistry } from '../lease/grant-registry.ts';
import { MemoryStore } from '../memory/memory-store.ts';
import { LockConfigError } from '../model/errors/mistakes.ts';
import { Events, type LockEvents, type LockListener } from '../model/events.ts';
import { type LockKey, listedName } from '../model/key.ts';
import { type LocksOptions, type LocksSettings, resolveLocksOptions } from '../model/options.ts';
import { processName } from '../model/process-name.ts';
import type { LockStore } from '../model/store.ts';
import type { ForceReleaseOptions, InspectOptions, ListOptions, LockInfo, LockPage } from '../model/types.ts';
import { checkOptions, describe, millisecondsOrZero, objectWith, type Rule } from '../model/validate.ts';
import type { Observe } from '../wait/observer.ts';
import { PendingAcquires } from '../wait/pending-acquires.ts';
import { forceReleaseLock, forceReleaseRules, inspectLock, inspectRules, listLocks } from './inspect.ts';
import { type PingOptions, type PingResult, pingStore } from './ping.ts';
import type { Runtime } from './runtime.ts';
import { type LocksStats, statsOf } from './stats.ts';

/**
 * A store with its options, and this process's part in it: its waiters, its holds and their renewal. Its methods work when
 * destructured.
 */
export interface Locks {
  readonly settings: LocksSettings;
  /**
   * Listens to an event. Returns the function that unsubscribes. A listener that throws breaks nothing. Throws
   * `LockConfigError` for an unknown event, and for a listener that is no function.
   *
   * @example
   * ```ts
   * import { createLocks } from 'reenlock';
   *
   * const locks = createLocks();
   * const stop = locks.on('lost', ({ key, heldMs }) => console.error(`lost ${key} after ${heldMs} ms`));
   * process.once('SIGTERM', stop);
   * ```
   */
  on<E extends keyof LockEvents>(event: E, listener: LockListener<E>): () => void;
  /**
   * Asks the store once, and resolves with what it found: for a readiness probe. Changes nothing, and needs no request or job. Resolves
   * within `timeoutMs` milliseconds (default `storeTimeoutMs`), also if the store fails. Rejects with `LockConfigError` for bad
   * options only.
   *
   * @example
   * ```ts
   * import { createLocks } from 'reenlock';
   *
   * const locks = createLocks();
   * export async function isReady(): Promise<boolean> {
   *   const { ok } = await locks.ping({ timeoutMs: 500 });
   *   return ok;
   * }
   * ```
   */
  ping(options?: PingOptions): Promise<PingResult>;
  /**
   * Counts the holds and waiters that this `Locks` has in this process. Makes no store call.
   *
   * @example
   * ```ts
   * import { createLocks } from 'reenlock';
   *
   * const locks = createLocks();
   * const { holds, waiters } = locks.stats();
   * console.log(`${holds} holds, ${waiters} waiters in this process`);
   * ```
   */
  stats(): LocksStats;
  /**
   * Returns a page of the locks that are held or waited for, over all processes, in no order. Pass the page's `cursor` to get the next
   * page, until a page has none. A lock that is held or waited for from the first page to the last is on one of the pages, perhaps on
   * two. Needs no request or job. A key of more than 256 bytes is listed by its hash, `%h…`, without its category. Rejects with
   * `LockConfigError` for bad options and if the store can't list, and with `LockStoreError`.
   *
   * @example
   * ```ts
   * import { createLocks } from 'reenlock';
   *
   * const locks = createLocks();
   * const first = await locks.list({ prefix: 'order:' });
   * for (const { key, holds } of first.locks) console.log(key, holds.length);
   * if (first.cursor !== undefined) await locks.list({ prefix: 'order:', cursor: first.cursor });
   * ```
   */
  list(options?: ListOptions): Promise<LockPage>;
  /**
   * Returns the holders and waiters of a key, over all processes. Needs no request or job. It also takes a hash that `list` returned.
   * The result may be out of date when you get it. Rejects with `LockKeyError`, `LockConfigError` and `LockStoreError`.
   *
   * @example
   * ```ts
   * import { createLocks } from 'reenlock';
   *
   * const locks = createLocks();
   * const { holds, waiters } = await locks.inspect('order:42');
   * console.log(`${holds.length} hold it, ${waiters.length} wait`);
   * ```
   */
  inspect(key: LockKey, options?: InspectOptions): Promise<LockInfo>;
  /**
   * Takes a key from its holders. Their holds are lost, and the next waiter gets the key. `by` and `reason` are passed to the
   * listeners of `forced`. Returns false and changes nothing if no one holds the key, or if its fence is not `fence`. It does not stop
   * what the holders do. Needs no request or job. It also takes a hash that `list` returned. Rejects as `inspect` does.
   *
   * @example
   * ```ts
   * import { createLocks } from 'reenlock';
   *
   * const locks = createLocks();
   * const { holds } = await locks.inspect('order:42');
   * const fence = holds[0]?.fence;
   * if (fence !== undefined) await locks.forceRelease('order:42', { fence, by: 'ann', reason: 'process hangs' });
   * ```
   */
  forceRelease(key: LockKey, options?: ForceReleaseOptions): Promise<boolean>;
  /**
   * Refuses new acquires and all waiters with `LocksClosedError`, except those that re-enter what their request or job holds. Waits
   * up to `drainMs` milliseconds (default 10 000) for holds to be released, then declares the remaining ones lost and releases them.
   * Closes the connections that the store opened for it, but not the application's client: close that afterwards. Detached holds
   * stay. You may call it again. It installs no signal handler. Rejects with `LockConfigError` for bad options.
   *
   * @example
   * ```ts
   * import { configureLocks } from 'reenlock';
   *
   * const locks = configureLocks();
   * process.once('SIGTERM', () => locks.close({ drainMs: 5_000 }));
   * ```
   */
  close(options?: { readonly drainMs?: number | undefined }): Promise<void>;
}

/**
 * Creates a `Locks`: a store with the default options of its acquires. It connects to nothing yet. Without a `store`, locks are kept in
 * memory and exclude no other process. Pass the result as `{ locks }` to `traceContext` and `runInTrace`, or use `configureLocks`.
 * Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import { createLocks, lock, runInTrace } from 'reenlock';
 * import { RedisStore } from 'reenlock/redis';
 * import { createClient } from 'redis';
 *
 * const client = await createClient({ url: process.env.REDIS_URL }).connect();
 * const locks = createLocks({ store: new RedisStore({ client }), waitMs: 5_000 });
 * await runInTrace(() => lock.run('report', () => writeReport()), { locks });
 * ```
 */
export function createLocks(options?: LocksOptions): Locks {
  return buildLocks(options, systemClock);
}

/** As `createLocks`, on the caller's clock. */
export function buildLocks(options: LocksOptions | undefined, clock: Clock): Locks {
  if (typeof options === 'object' && options !== null && runtimeSlot in options) {
    throw new LockConfigError(
      'Expected the options of a `Locks`, got a `Locks` that exists: `configureLocks(options)` creates one itself and makes it the default. Remove the call of `createLocks`',
    );
  }
  const locks = new ProcessLocks(resolveLocksOptions(options), clock);
  const { configured, created } = processState();
  if (configured === undefined) created.add(locks);
  return locks;
}

/** The rule for an option that takes a `Locks`. Whether it is one, `runtimeOf` finds out. */
export const locksRule: Rule = objectWith('a `Locks`', 'on', 'close');

/** The inside of a `Locks`. Throws `LockConfigError` for anything else. */
export function runtimeOf(locks: Locks): Runtime {
  const runtime = (locks as Partial<ProcessLocks> | null)?.[runtimeSlot];
  if (runtime !== undefined) return runtime;
  throw new LockConfigError(
    `Expected \`locks\` to be what \`createLocks\` or \`configureLocks\` returned, got ${describe(locks)}`,
  );
}

/** Also found on a `Locks` of another installed copy of this package. */
const runtimeSlot: unique symbol = Symbol.for('reenlock.runtime');

class ProcessLocks implements Locks {
  readonly settings: LocksSettings;
  declare readonly [runtimeSlot]: Runtime;
  readonly #stopFaults: () => void;
  #closing: Promise<void> | undefined;

  constructor(settings: LocksSettings, clock: Clock) {
    this.settings = settings;
    const store: LockStore = settings.store ?? new MemoryStore({ clock });
    if (isOneOfMany() && store.capabilities.shared === false) {
      warnOnce(
        'LOCK_CLUSTER',
        'This process or thread is one of several (a cluster worker, an instance of PM2, a worker thread), and its `Locks` is in memory: the others are not excluded. Give it a store that they share',
      );
    }
    const events = new Events();
    this.#stopFaults = onFault(events);
    const access: StoreAccess = {
      settings,
      clock,
      events,
      client: new StoreClient(store, events, clock, settings),
      holdTimes: new HoldTimes(),
      process: processName(settings.instance, clock.randomId()),
    };
    const releases = new Releases(access);
    const grants = new GrantRegistry(access, releases);
    const findDeadlocks: Observe = (refuse) => new Deadlocks(access, refuse);
    const observe = store.capabilities.edges ? findDeadlocks : undefined;
    const acquires = new PendingAcquires(access, releases, grants, observe);
    const runtime: Runtime = { ...access, locks: this, callSites: new CallSites(), acquires, grants, releases };
    // Not enumerable: copies and prints of a `Locks` have no process name and no connection.
    Object.defineProperty(this, runtimeSlot, { value: runtime });
  }

  readonly on = <E extends keyof LockEvents>(event: E, listener: LockListener<E>): (() => void) =>
    this[runtimeSlot].events.on(event, listener);

  readonly stats = (): LocksStats => statsOf(this[runtimeSlot]);

  readonly ping = (options?: PingOptions): Promise<PingResult> => pingStore(this[runtimeSlot], options);

  readonly list = (options?: ListOptions): Promise<LockPage> => listLocks(this[runtimeSlot], options);

  readonly inspect = async (key: LockKey, options?: InspectOptions): Promise<LockInfo> => {
    const { category } = checkOptions(options, inspectRules, 'inspect');
    return inspectLock(this[runtimeSlot], listedName(key, category));
  };

  readonly forceRelease = async (key: LockKey, options?: ForceReleaseOptions): Promise<boolean> => {
    const { category, ...target } = checkOptions(options, forceReleaseRules, 'forceRelease');
    return forceReleaseLock(this[runtimeSlot], listedName(key, category), target);
  };

  readonly close = (options?: { readonly drainMs?: number | undefined }): Promise<void> => {
    try {
      const { drainMs } = checkOptions(options, { drainMs: millisecondsOrZero }, 'close');
      this.#closing ??= this.#close(drainMs ?? this.settings.drainMs);
      return this.#closing;
    } catch (error) {
      return Promise.reject(error);
    }
  };

  /** Its options, except those that lead to connections and secrets. */
  toJSON(): object {
    const { store: _, trust: __, ...settings } = this.settings;
    return settings;
  }

  async #close(drainMs: number): Promise<void> {
    const { acquires, grants, releases, client, clock } = this[runtimeSlot];
    const { storeTimeoutMs } = this.settings;
    // It stays the configured one: a job that begins now is refused, instead of getting a `Locks` in memory.
    processState().created.delete(this);
    acquires.close();
    await within(clock, drainMs, grants.idle());
    for (const grant of grants.all) grants.lose(grant, 'The lock was lost: the server has shut down');
    acquires.close();
    // An acquire in flight may still be granted, and must be released.
    await within(clock, storeTimeoutMs, acquires.inFlight.idle());
    await within(clock, storeTimeoutMs, releases.idle());
    await within(clock, storeTimeoutMs, acquires.end());
    releases.close();
    grants.close();
    client.close();
    this.#stopFaults();
  }
}

inspectAsJson(ProcessLocks, 'Locks');

/** PM2 numbers its instances from 0, in each of its modes: the first may be the only one. Test runners use threads, too. */
function isOneOfMany(): boolean {
  const { NODE_APP_INSTANCE, NODE_ENV } = process.env;
  return cluster.isWorker || Number(NODE_APP_INSTANCE) > 0 || !(threads.isMainThread || NODE_ENV === 'test');
}
