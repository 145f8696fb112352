import { type Clock, pause } from '../../../src/core/base/clock.ts';
import { MemoryStore } from '../../../src/core/memory/memory-store.ts';
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
} from '../../../src/core/model/store.ts';
import { gate } from '../gate.ts';

export type StoreOperation =
  | 'acquire'
  | 'renew'
  | 'release'
  | 'transfer'
  | 'inspect'
  | 'forceRelease'
  | 'list'
  | 'subscribe'
  | 'setEdge'
  | 'clearEdge'
  | 'edgesOf'
  | 'wait';

/** What happens to a call. The times are on the fake's clock. */
export type Fault =
  /** It is executed at once, and its reply comes `ms` later. */
  | { readonly kind: 'lateReply'; readonly ms: number }
  /** It reaches the store `ms` later, and is answered then. */
  | { readonly kind: 'lateCall'; readonly ms: number }
  /** It is executed, and the reply never comes. */
  | { readonly kind: 'lostReply' }
  /** It never reaches the store, and never settles. */
  | { readonly kind: 'lostCall' }
  /** It is executed, and once more `ms` later; the first reply counts. */
  | { readonly kind: 'duplicate'; readonly ms: number }
  /** It never reaches the store, and rejects. */
  | { readonly kind: 'rejected'; readonly error: unknown }
  /** It is executed, and rejects. */
  | { readonly kind: 'rejectedReply'; readonly error: unknown }
  /** It throws instead of answering with a promise. */
  | { readonly kind: 'thrown'; readonly error: unknown }
  /** It is executed at once, and its reply comes when the gate is opened. */
  | { readonly kind: 'gate'; readonly opened: Promise<void> };

export interface StoreCall {
  readonly operation: StoreOperation;
  readonly holdId: string | undefined;
  readonly terms: unknown;
  /** On the monotonic clock. */
  readonly atMs: number;
}

/** A store in memory whose calls, replies and messages go wrong when a test says so. */
export class FakeStore implements LockStore {
  readonly capabilities: StoreCapabilities;
  /** Every call made, in order. */
  readonly calls: StoreCall[] = [];
  /** Whether messages get lost on their way. */
  isMute = false;
  /** Called with every message that is on its way. */
  onMessage: StoreListener = () => {};
  readonly #clock: Clock;
  #memory: MemoryStore;
  readonly #next = new Map<StoreOperation, Fault[]>();
  readonly #always = new Map<StoreOperation, Fault>();
  readonly #listeners = new Map<string, StoreListener>();
  readonly #options = new Map<string, SubscribeOptions>();
  readonly #ids = new Set<string>();
  readonly #owners = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#memory = new MemoryStore({ clock });
    this.capabilities = this.#memory.capabilities;
  }

  /** The next calls of an operation meet these faults, in order. */
  next(operation: StoreOperation, ...faults: Fault[]): void {
    this.#next.set(operation, [...(this.#next.get(operation) ?? []), ...faults]);
  }

  /** Every call of an operation meets this fault until `heal`. */
  always(operation: StoreOperation, fault: Fault): void {
    this.#always.set(operation, fault);
  }

  /** The next call of an operation is executed; its reply waits for the function that comes back. */
  gate(operation: StoreOperation): () => void {
    const opened = gate();
    this.next(operation, { kind: 'gate', opened });
    return opened.open;
  }

  /** From here on, all goes well. */
  heal(): void {
    this.#next.clear();
    this.#always.clear();
    this.isMute = false;
  }

  /** The store starts anew, without its data; listeners stay. */
  async forget(): Promise<void> {
    this.#memory = new MemoryStore({ clock: this.#clock });
    for (const [process, listener] of this.#listeners)
      await this.#memory.subscribe(process, listener, this.#options.get(process));
  }

  count(operation: StoreOperation): number {
    return this.calls.filter((call) => call.operation === operation).length;
  }

  /** What every process that listens is told. */
  broadcast(message: StoreMessage): void {
    for (const listener of this.#listeners.values()) listener(message);
  }

  /** What is left: locks with a hold whose lease lasts, or a waiter, and owners with an edge. */
  async remains(): Promise<string[]> {
    const left: string[] = [];
    for (const id of this.#ids) {
      const { holds, waiters } = await this.#memory.inspect(id);
      if (holds.length + waiters.length > 0) left.push(id);
    }
    for (const owner of this.#owners)
      if ((await this.#memory.edges.of(owner)).length > 0) left.push(`edges of ${owner}`);
    return left;
  }

  readonly edges: EdgeStore = {
    set: (owner, edge, ttlMs) => {
      this.#owners.add(owner);
      return this.#edgeCall('setEdge', edge.request, owner, (edges) => edges.set(owner, edge, ttlMs));
    },
    clear: (owner, edge) => this.#edgeCall('clearEdge', edge.request, owner, (edges) => edges.clear(owner, edge)),
    of: (owner) => this.#edgeCall('edgesOf', undefined, owner, (edges) => edges.of(owner)),
    wait: (request) => this.#edgeCall('wait', request, undefined, (edges) => edges.wait(request)),
  };

  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    this.#ids.add(request.id);
    // The store in memory knows nothing of faults: a copy may arrive later.
    return this.#call('acquire', request.holdId, terms, async () => {
      const { mayArriveLater: _, ...reply } = await this.#memory.acquire(request, terms);
      return reply;
    });
  }

  renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return this.#call('renew', request.holdId, terms, async () => this.#memory.renew(request, terms));
  }

  release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    // An acquire may arrive late or twice. The store forgets a release only if it gets the object that it granted.
    return this.#call('release', request.holdId, terms, async () => this.#memory.release({ ...request }, terms));
  }

  transfer(from: HoldRequest, to: HoldRequest, terms: TransferTerms): Promise<TransferReply> {
    return this.#call('transfer', to.holdId, terms, async () => this.#memory.transfer(from, to, terms));
  }

  inspect(id: string): Promise<InspectReply> {
    return this.#call('inspect', undefined, id, () => this.#memory.inspect(id));
  }

  forceRelease(id: string, fence: number): Promise<boolean> {
    return this.#call('forceRelease', undefined, fence, () => this.#memory.forceRelease(id, fence));
  }

  list(request: ListRequest): Promise<ListReply> {
    return this.#call('list', undefined, request, () => this.#memory.list(request));
  }

  subscribe(process: string, listener: StoreListener, options?: SubscribeOptions): Promise<Unsubscribe> {
    return this.#call('subscribe', undefined, process, async () => {
      const hear: StoreListener = (message) => {
        this.onMessage(message);
        if (!this.isMute) listener(message);
      };
      this.#listeners.set(process, hear);
      if (options !== undefined) this.#options.set(process, options);
      await this.#memory.subscribe(process, hear, options);
      return async () => {
        this.#listeners.delete(process);
        // A second subscription of the memory store's would outlive the first one's end.
        await (await this.#memory.subscribe(process, hear))();
      };
    });
  }

  #edgeCall<T>(
    operation: StoreOperation,
    request: HoldRequest | undefined,
    terms: unknown,
    execute: (edges: EdgeStore) => Promise<T>,
  ): Promise<T> {
    return this.#call(operation, request?.holdId, terms, () => execute(this.#memory.edges));
  }

  #call<T>(
    operation: StoreOperation,
    holdId: string | undefined,
    terms: unknown,
    execute: () => Promise<T>,
  ): Promise<T> {
    this.calls.push({ operation, holdId, terms, atMs: this.#clock.now().monoMs });
    const fault = this.#next.get(operation)?.shift() ?? this.#always.get(operation);
    if (fault?.kind === 'thrown') throw fault.error;
    return fault === undefined ? execute() : this.#faulty(fault, execute);
  }

  async #faulty<T>(fault: Exclude<Fault, { kind: 'thrown' }>, execute: () => Promise<T>): Promise<T> {
    if (fault.kind === 'rejected') throw fault.error;
    if (fault.kind === 'lostCall') return never();
    if (fault.kind === 'lateCall') {
      await pause(this.#clock, fault.ms);
      return execute();
    }
    const reply = await execute();
    if (fault.kind === 'lostReply') return never();
    if (fault.kind === 'rejectedReply') throw fault.error;
    if (fault.kind === 'duplicate') void pause(this.#clock, fault.ms).then(execute);
    if (fault.kind === 'lateReply') await pause(this.#clock, fault.ms);
    if (fault.kind === 'gate') await fault.opened;
    return reply;
  }
}

function never<T>(): Promise<T> {
  return new Promise(() => {});
}
