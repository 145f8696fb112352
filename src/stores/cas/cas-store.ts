import { type Clock, systemClock } from '../../core/base/clock.ts';
import { acquire, forceRelease, inspect, release, renew, transfer } from '../../core/machine/operations.ts';
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
  StoreListener,
  TransferReply,
  TransferTerms,
  Unsubscribe,
} from '../../core/model/store.ts';
import { checkOptions, milliseconds, objectWith, text } from '../../core/model/validate.ts';
import type { CasAdapter } from './adapter.ts';
import { RecordUpdates } from './record-updates.ts';

/** The options of a `CasStore`. */
export interface CasStoreOptions {
  /** The server: a `RedisCas`, a `PostgresCas`, a `MySqlCas`, or your own adapter. */
  readonly adapter: CasAdapter;
  /** The beginning of every key, without braces and white space. Default `reenlock:`. */
  readonly prefix?: string | undefined;
  /** How long one operation may take, with all its attempts, in milliseconds. Default 1 500. */
  readonly deadlineMs?: number | undefined;
  /**
   * How long the last fence of a key is remembered after its last use, in milliseconds: as long as that, fences rise even if
   * the server's clock is set back. 60 000 at least, default 3 600 000.
   */
  readonly recordTtlMs?: number | undefined;
}

/**
 * Locks on a server without scripts, by optimistic concurrency: a lock is one record. Each operation reads the record,
 * computes the new one, and writes it if nobody has changed it in between. The queue is in the record, and a release hands
 * the lock to the next waiter in the same write. There is no channel between processes: a waiter in another process finds
 * its grant when it polls, every `pollMs`. Throws `LockConfigError` for bad options. Its calls reject with `LockStoreError`,
 * also if other processes change the record at each attempt until `deadlineMs`.
 *
 * @example
 * ```ts
 * import { configureLocks } from 'reenlock';
 * import { CasStore, RedisCas } from 'reenlock/redis';
 * import { createClient } from 'redis';
 *
 * const client = await createClient({ url: process.env.REDIS_URL }).connect();
 * configureLocks({ store: new CasStore({ adapter: new RedisCas({ client }) }), pollMs: 100 });
 * ```
 */
export class CasStore implements LockStore {
  readonly capabilities: StoreCapabilities = {
    queue: true,
    handOff: true,
    reachability: false,
    modes: true,
    permits: true,
    shared: true,
    edges: false,
    transfer: true,
  };
  readonly #adapter: CasAdapter;
  readonly #updates: RecordUpdates;
  readonly #listeners = new Map<string, StoreListener>();

  constructor(options: CasStoreOptions, clock: Clock = systemClock) {
    const given = checkOptions(options, rules, 'CasStore', 'adapter');
    const { adapter, prefix = 'reenlock:', deadlineMs = 1_500, recordTtlMs = 3_600_000 } = given;
    this.#adapter = adapter;
    const settings = { prefix, deadlineMs, recordTtlMs };
    this.#updates = new RecordUpdates(adapter, clock, settings, (messages) => {
      for (const { process, message } of messages) this.#listeners.get(process)?.(message);
    });
  }

  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    return this.#updates.update(request.id, 'acquire', (record) =>
      acquire(record.lock, record.host(request.process), request, terms),
    );
  }

  renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return this.#updates.update(request.id, 'renew', (record) => renew(record.lock, record.nowMs, request, terms));
  }

  release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    return this.#updates.update(request.id, 'release', (record) =>
      release(record.lock, record.host(request.process), request, terms),
    );
  }

  transfer(from: HoldRequest, to: HoldRequest, terms: TransferTerms): Promise<TransferReply> {
    return this.#updates.update(from.id, 'transfer', (record) =>
      transfer(record.lock, record.host(undefined), from, to, terms),
    );
  }

  inspect(id: string): Promise<InspectReply> {
    return this.#updates.read(id, 'inspect', (record) => inspect(record.lock, record.nowMs));
  }

  forceRelease(id: string, fence: number): Promise<boolean> {
    return this.#updates.update(id, 'force release', (record) =>
      forceRelease(record.lock, record.host(undefined), fence),
    );
  }

  /** Messages are only about calls on this store object. Waiters find the changes of other processes by polling. */
  async subscribe(process: string, listener: StoreListener): Promise<Unsubscribe> {
    this.#listeners.set(process, listener);
    this.#warn(listener);
    return async () => {
      this.#listeners.delete(process);
    };
  }

  #warn(listener: StoreListener): void {
    this.#adapter.warning?.().then(
      (warning) => {
        if (warning !== undefined) listener({ kind: 'warning', ...warning });
      },
      () => undefined, // Not allowed, or not connected: then the calls on locks fail, too.
    );
  }
}

const rules = {
  adapter: objectWith('a CasAdapter', 'read', 'create', 'replace', 'remove'),
  prefix: text(/^[^{}\s]*$/, 'a string without braces and white space'),
  deadlineMs: milliseconds(),
  recordTtlMs: milliseconds(60_000),
};
