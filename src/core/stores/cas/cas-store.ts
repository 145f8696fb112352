import { type Clock, systemClock } from '../../base/clock.ts';
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
  Unsubscribe,
} from '../../model/store.ts';
import { checkOptions, milliseconds, objectWith, text } from '../../model/validate.ts';
import { acquire, forceRelease, inspect, release, renew } from '../machine/operations.ts';
import type { CasAdapter } from './adapter.ts';
import { CasTurns } from './turns.ts';

/** Which server keeps the locks, under which names, and how long it is tried. */
export interface CasStoreOptions {
  /** The server: a `RedisCas`, a `PostgresCas`, or one of the application's own. */
  readonly adapter: CasAdapter;
  /** Before every key; without braces and white space. Default `reenlock:`. */
  readonly prefix?: string | undefined;
  /** How long one operation may take with all its tries, in milliseconds. Default 1 500. */
  readonly deadlineMs?: number | undefined;
}

/**
 * Locks on a server without scripts, by optimistic concurrency: a lock is one record, and every operation reads it,
 * computes, and writes it if it is unchanged. The queue is in the record, and a release hands the lock on in the same
 * write. There is no channel between processes: a waiter in another process finds its grant when it polls, every `pollMs`.
 * Throws `LockConfigError` for bad options; its calls reject with `LockStoreError`, also where others were faster until
 * `deadlineMs`.
 */
export class CasStore implements LockStore {
  readonly capabilities: StoreCapabilities = {
    queue: true,
    handOff: true,
    reachability: false,
    modes: true,
    shared: true,
    edges: false,
  };
  readonly #adapter: CasAdapter;
  readonly #turns: CasTurns;
  readonly #listeners = new Map<string, StoreListener>();

  constructor(options: CasStoreOptions, clock: Clock = systemClock) {
    const { adapter, prefix = 'reenlock:', deadlineMs = 1_500 } = checkOptions(options, rules, 'CasStore', 'adapter');
    this.#adapter = adapter;
    this.#turns = new CasTurns(adapter, clock, prefix, deadlineMs, (messages) => {
      for (const { process, message } of messages) this.#listeners.get(process)?.(message);
    });
  }

  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    return this.#turns.run(request.id, 'acquire', (record) =>
      acquire(record.lock, record.host(request.process), request, terms),
    );
  }

  renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return this.#turns.run(request.id, 'renew', (record) => renew(record.lock, record.nowMs, request, terms));
  }

  release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    return this.#turns.run(request.id, 'release', (record) =>
      release(record.lock, record.host(request.process), request, terms),
    );
  }

  inspect(id: string): Promise<InspectReply> {
    return this.#turns.look(id, 'inspect', (record) => inspect(record.lock, record.nowMs));
  }

  forceRelease(id: string, fence: number): Promise<boolean> {
    return this.#turns.run(id, 'force release', (record) => forceRelease(record.lock, record.host(undefined), fence));
  }

  /** Tells of what the calls on this very store did; of those of other processes, only polls tell. */
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
      () => undefined, // Not allowed, or not connected: the calls themselves will tell.
    );
  }
}

const rules = {
  adapter: objectWith('a CasAdapter', 'read', 'create', 'replace', 'remove'),
  prefix: text(/^[^{}\s]*$/, 'a string without braces and white space'),
  deadlineMs: milliseconds(10),
};
