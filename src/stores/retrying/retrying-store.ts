import { type Clock, systemClock } from '../../core/base/clock.ts';
import type { Link } from '../../core/base/link.ts';
import { lockStore } from '../../core/model/options.ts';
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
  SubscribeOptions,
  Unsubscribe,
} from '../../core/model/store.ts';
import { checkValue } from '../../core/model/validate.ts';
import { Line } from './line.ts';

/**
 * Gives a store without a queue one for each process: a store whose `acquire` grants or refuses at once, whatever `terms.queue` is. The
 * waiters of this process for a key queue in memory. Only the first of them tries: in short pauses at first, and soon after the
 * store has announced a release. They therefore get the key in order. Between processes there is no order. A call that is nested
 * in a hold of the key overtakes the queue. Throws `LockConfigError` if `store` is no store.
 *
 * The store has to announce releases: `release` with `announce`, and `subscribe` with `freed`. An announcement may get lost.
 *
 * @example
 * ```ts
 * import { configureLocks } from 'reenlock';
 * import { RetryingStore } from 'reenlock/redis';
 *
 * const store = new MyStore(); // grants or refuses at once, and announces releases
 * configureLocks({ store: new RetryingStore(store) });
 * ```
 */
export class RetryingStore implements LockStore {
  readonly capabilities: StoreCapabilities;
  readonly link: Link | undefined;
  readonly #store: LockStore;
  readonly #clock: Clock;
  /** The line of each lock with waiters. */
  readonly #lines = new Map<string, Line>();
  /** The listener for grants, by process. */
  readonly #listeners = new Map<string, StoreListener>();

  /** Throws `LockConfigError` if `store` is no store. */
  constructor(store: LockStore, clock: Clock = systemClock) {
    checkValue('what RetryingStore is given', store, lockStore);
    this.#store = store;
    this.#clock = clock;
    this.link = store.link;
    const { modes, permits = false, shared, maxLeaseMs } = store.capabilities;
    const limits = maxLeaseMs === undefined ? {} : { maxLeaseMs };
    this.capabilities = { queue: false, handOff: false, reachability: false, modes, permits, shared, ...limits };
  }

  async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    if (!terms.queue) return this.#store.acquire(request, terms);
    return this.#lineOf(request.id).acquire(request, terms);
  }

  async renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return this.#store.renew(request, terms);
  }

  async release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    this.#lines.get(request.id)?.cancel(request.holdId);
    return this.#store.release(request, { ...terms, announce: true });
  }

  /** Names the holds. The waiters are in the memory of their processes. */
  async inspect(id: string): Promise<InspectReply> {
    return this.#store.inspect(id);
  }

  async forceRelease(id: string, fence: number): Promise<boolean> {
    return this.#store.forceRelease(id, fence);
  }

  async subscribe(process: string, listener: StoreListener, options?: SubscribeOptions): Promise<Unsubscribe> {
    const listen: StoreListener = (message) => {
      if (message.kind === 'freed') this.#lines.get(message.id)?.onFreed();
      if (message.kind !== 'freed' || options?.freed) listener(message);
    };
    const end = await this.#store.subscribe(process, listen, { freed: true });
    this.#listeners.set(process, listener);
    return () => {
      if (this.#listeners.get(process) === listener) this.#listeners.delete(process);
      return end();
    };
  }

  #lineOf(id: string): Line {
    let line = this.#lines.get(id);
    if (line === undefined) {
      line = new Line(id, this.#store, this.#clock, this.#listeners, () => this.#lines.delete(id));
      this.#lines.set(id, line);
    }
    return line;
  }
}
