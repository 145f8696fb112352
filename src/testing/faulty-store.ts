import { type Clock, pause } from '../core/base/clock.ts';
import { MemoryStore } from '../core/memory/memory-store.ts';
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
  SubscribeOptions,
  TransferReply,
  TransferTerms,
  Unsubscribe,
} from '../core/model/store.ts';
import { checkValue, oneOf, type Rule } from '../core/model/validate.ts';

/** The store calls that can be made to fail. */
export type StoreOperation = 'acquire' | 'renew' | 'release' | 'transfer' | 'inspect' | 'forceRelease' | 'list';

/**
 * How a store call fails:
 * - an `Error`: the call does not reach the store, and rejects with this error.
 * - `'lost-call'`: the call does not reach the store, and there is no reply. It times out after `storeTimeoutMs`.
 * - `'lost-reply'`: the store executes the call, and the reply is lost. It times out after `storeTimeoutMs`.
 * - `'late'`: the store executes the call, and its reply arrives after `storeTimeoutMs`.
 */
export type StoreFault = Error | 'lost-call' | 'lost-reply' | 'late';

const operation = oneOf('acquire', 'renew', 'release', 'transfer', 'inspect', 'forceRelease', 'list');
const faultNames = oneOf('lost-call', 'lost-reply', 'late');
const fault: Rule = {
  expected: `an Error or ${faultNames.expected}`,
  accepts: (value) => value instanceof Error || faultNames.accepts(value),
};

/** A store in memory whose calls fail on demand. */
export class FaultyStore implements LockStore {
  readonly capabilities: StoreCapabilities;
  readonly edges: EdgeStore;
  readonly #memory: MemoryStore;
  readonly #clock: Clock;
  readonly #lateMs: number;
  readonly #faults = new Map<StoreOperation, StoreFault[]>();

  /** The delay of a late reply. */
  constructor(clock: Clock, lateMs: number) {
    this.#memory = new MemoryStore({ clock });
    this.#clock = clock;
    this.#lateMs = lateMs;
    this.capabilities = this.#memory.capabilities;
    this.edges = this.#memory.edges;
  }

  failNext(call: StoreOperation, how: StoreFault): void {
    checkValue('the operation of failNext', call, operation);
    checkValue('the fault of failNext', how, fault);
    this.#faults.set(call, [...(this.#faults.get(call) ?? []), how]);
  }

  heal(): void {
    this.#faults.clear();
  }

  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    return this.#call('acquire', () => this.#memory.acquire(request, terms));
  }

  renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return this.#call('renew', () => this.#memory.renew(request, terms));
  }

  release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    return this.#call('release', () => this.#memory.release(request, terms));
  }

  transfer(from: HoldRequest, to: HoldRequest, terms: TransferTerms): Promise<TransferReply> {
    return this.#call('transfer', () => this.#memory.transfer(from, to, terms));
  }

  async inspect(id: string): Promise<InspectReply> {
    return this.#call('inspect', () => this.#memory.inspect(id));
  }

  async forceRelease(id: string, fence: number): Promise<boolean> {
    return this.#call('forceRelease', () => this.#memory.forceRelease(id, fence));
  }

  async list(request: ListRequest): Promise<ListReply> {
    return this.#call('list', () => this.#memory.list(request));
  }

  subscribe(process: string, listener: StoreListener, options?: SubscribeOptions): Promise<Unsubscribe> {
    return this.#memory.subscribe(process, listener, options);
  }

  /** As `list` and `inspect`, for the test kit itself: never fails. */
  get inside(): Pick<MemoryStore, 'list' | 'inspect'> {
    return this.#memory;
  }

  #call<T>(operation: StoreOperation, call: () => Promise<T>): Promise<T> {
    const fault = this.#faults.get(operation)?.shift();
    return fault === undefined ? call() : this.#fail(fault, call);
  }

  async #fail<T>(fault: StoreFault, call: () => Promise<T>): Promise<T> {
    if (fault instanceof Error) throw fault;
    if (fault === 'lost-call') return never();
    const reply = await call();
    if (fault === 'lost-reply') return never();
    await pause(this.#clock, this.#lateMs);
    return reply;
  }
}

function never<T>(): Promise<T> {
  return new Promise(() => {});
}
