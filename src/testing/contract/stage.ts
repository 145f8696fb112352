import { EventEmitter, once } from 'node:events';
import { systemClock } from '../../core/base/clock.ts';
import type {
  AcquireReply,
  AcquireTerms,
  HoldRequest,
  InspectReply,
  LockStore,
  ReleaseReply,
  RenewReply,
  StoreGrant,
  StoreMessage,
  SubscribeOptions,
  TransferReply,
  Unsubscribe,
  WaiterGrant,
} from '../../core/model/store.ts';
import { longMs, type StoreHarness, shortMs } from './harness.ts';
import type { TestRunner } from './runner.ts';

export const key = 'order:42';
/** In the hash slot of `key`: in a cluster, the messages of one server are in order. */
const lastId = 'last:45082';

/** What the clauses of one store share: the harness, and a stage that is set up anew for every test. */
export interface Contract {
  readonly harness: StoreHarness;
  /** Whether the store has something, which the harness would else name among what it lacks. */
  has(part: NonNullable<StoreHarness['lacks']>[number]): boolean;
  readonly stage: StoreStage;
  readonly describe: TestRunner['describe'];
  readonly it: TestRunner['it'];
  /** `it` for what needs a queue. If the store declares that it has none, there is no such test. */
  readonly itQueues: TestRunner['it'];
  readonly expect: TestRunner['expect'];
}

/** One test's store, and the processes that were connected to it. */
export class StoreStage {
  #store: LockStore | undefined;
  #processes: Process[] = [];

  get store(): LockStore {
    return this.#store as LockStore;
  }

  /** Also used for the store that goes on after a loss. */
  set store(store: LockStore) {
    this.#store = store;
  }

  /** A process that listens for its grants. */
  async process(options?: SubscribeOptions): Promise<Process> {
    const process = this.deafProcess();
    await process.listen(options);
    return process;
  }

  /** A process that nobody reaches: it never subscribed. */
  deafProcess(): Process {
    const process = new Process(this);
    this.#processes.push(process);
    return process;
  }

  /** A holder-to-be, whose lease is of `shortMs` and starts with `begin`: there is time to queue behind it. */
  async shortTurn(): Promise<{ process: Process; holder: Line; begin(): Promise<unknown> }> {
    const before = this.deafProcess().line();
    await before.hold();
    const process = await this.process();
    const holder = await process.line(undefined, { claimMs: shortMs }).wait();
    return { process, holder, begin: () => before.release() };
  }

  inspect(id: string = key): Promise<InspectReply> {
    return this.store.inspect(id);
  }

  /** The holders and waiters, by hold id. */
  async order(): Promise<{ holds: string[]; waiters: string[] }> {
    const { holds, waiters } = await this.inspect();
    return { holds: holds.map(({ holdId }) => holdId), waiters: waiters.map(({ holdId }) => holdId) };
  }

  async end(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.leave()));
    this.#processes = [];
  }
}

/** One process: its requests, and its messages in the stream. */
export class Process {
  readonly name: string = id('process');
  /** All messages of the stream, in order, without the one at its beginning. */
  readonly messages: StoreMessage[] = [];
  readonly #stage: StoreStage;
  readonly #arrivals = new EventEmitter();
  #unsubscribe: Unsubscribe | undefined;

  constructor(stage: StoreStage) {
    this.#stage = stage;
  }

  async listen(options?: SubscribeOptions): Promise<void> {
    const listener = (message: StoreMessage): void => {
      if (message.kind === 'resubscribed' || message.kind === 'fault') return;
      this.messages.push(message);
      this.#arrivals.emit('message');
    };
    this.#unsubscribe = await this.#stage.store.subscribe(this.name, listener, options);
  }

  async leave(): Promise<void> {
    await this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  /** A future acquire; without `owner`, of a new one. */
  line(owner: string = id('owner'), over: Partial<HoldRequest> = {}): Line {
    return new Line(this.#stage, {
      id: key,
      holdId: id('hold'),
      owner,
      process: this.name,
      claimMs: longMs,
      mode: 'write',
      priority: 0,
      ...over,
    });
  }

  /** As `line`, to read. */
  reader(owner?: string, over: Partial<HoldRequest> = {}): Line {
    return this.line(owner, { mode: 'read', ...over });
  }

  /** As `line`, for one of the key's permits. */
  permit(permits: number, owner?: string): Line {
    return this.line(owner, { mode: 'permit', permits });
  }

  /** The first grant to the hold id in the stream. */
  async granted({ request }: Line): Promise<WaiterGrant> {
    while (true) {
      for (const message of this.messages) {
        if (message.kind === 'granted' && message.grant.holdId === request.holdId) return message.grant;
      }
      await once(this.#arrivals, 'message');
    }
  }

  /** Everything that was sent to the process before this call: the stream is in order, so a last message is awaited. */
  async heard(): Promise<readonly StoreMessage[]> {
    const last = this.line(undefined, { id: lastId });
    const { fence } = await last.hold();
    await this.#stage.store.forceRelease(last.request.id, fence);
    const isLast = (message: StoreMessage) => message.kind === 'lost' && message.holdId === last.request.holdId;
    while (!this.messages.some(isLast)) await once(this.#arrivals, 'message');
    return this.messages.filter((message) => !isLast(message));
  }
}

/** One acquire, its polls, its hold and its release: everything under one hold id. */
export class Line {
  readonly request: HoldRequest;
  readonly #stage: StoreStage;

  constructor(stage: StoreStage, request: HoldRequest) {
    this.#stage = stage;
    this.request = request;
  }

  get holdId(): string {
    return this.request.holdId;
  }

  /** The same acquire in the hands of a caller that made none of its calls: the store cannot know whether all arrived. */
  get copy(): Line {
    return new Line(this.#stage, { ...this.request });
  }

  /** Acquires and queues; a repeat is the poll. */
  async ask(over: Partial<AcquireTerms> = {}): Promise<AcquireReply> {
    const terms = { leaseMs: longMs, queue: true, maxWaiters: 100, livenessMs: longMs, ...over };
    return this.#stage.store.acquire(this.request, terms);
  }

  /** Acquires without queueing. */
  try(): Promise<AcquireReply> {
    return this.ask({ queue: false });
  }

  /** Acquires a key that must be free, or already granted. Returns the grant without its numbers. */
  async hold(over: Partial<AcquireTerms> = {}): Promise<StoreGrant> {
    const reply = await this.ask(over);
    if (reply.status !== 'granted') throw new Error(`Expected the key to be granted, got '${reply.status}'`);
    const { holdId, fence, endMs, isClaim } = reply.grant;
    return { holdId, fence, endMs, isClaim };
  }

  /** As `hold`, for a test that needs no grant. */
  async acquired(over: Partial<AcquireTerms> = {}): Promise<this> {
    await this.hold(over);
    return this;
  }

  /** Acquires, and returns the result. */
  async status(over: Partial<AcquireTerms> = {}): Promise<AcquireReply['status']> {
    return (await this.ask(over)).status;
  }

  /** Acquires what must be taken. */
  async wait(over: Partial<AcquireTerms> = {}): Promise<this> {
    const { status } = await this.ask(over);
    if (status !== 'queued') throw new Error(`Expected to be queued, got '${status}'`);
    return this;
  }

  async renew(fence: number, leaseMs: number = longMs): Promise<RenewReply> {
    return this.#stage.store.renew(this.request, { fence, leaseMs });
  }

  /** Passes its hold on to another line. */
  async transfer(to: Line, leaseMs: number = longMs): Promise<TransferReply> {
    const { store } = this.#stage as { store: Required<LockStore> };
    return store.transfer(this.request, to.request, { leaseMs, tombstoneMs: longMs });
  }

  async release(tombstoneMs = 0): Promise<ReleaseReply> {
    return this.#stage.store.release(this.request, { tombstoneMs });
  }
}

function id(kind: string): string {
  return `${kind}-${systemClock.randomId()}`;
}

/** The hold ids of these acquires. */
export function holdIds(lines: readonly Line[]): string[] {
  return lines.map(({ holdId }) => holdId);
}
