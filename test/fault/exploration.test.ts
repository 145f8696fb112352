import fc from 'fast-check';
import { processState } from '../../src/core/base/process-state.ts';
import type { AcquireOptions } from '../../src/core/index.ts';
import type { LockStore, StoreListener, Unsubscribe } from '../../src/core/model/store.ts';
import { buildLocks } from '../../src/core/runtime/locks.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { FakeStore, type Fault, type StoreOperation } from '../support/stores/fake-store.ts';
import { type Entry, violationsOf } from './history.ts';
import { type Held, Recorder } from './recorder.ts';
import { isLong, printSeed, seed } from './seed.ts';
import { NoPoll, PassThrough } from './seeded-bugs.ts';

printSeed('exploration');

const key = 'order:42';
const runs = isLong ? 100_000 : 2_000;
const mostMs = isLong ? 3_600_000 : 4_000;

/** The way of one process to the store: after a crash it is as if nobody were there. */
class Way extends PassThrough {
  isDead = false;
  #leave: Unsubscribe | undefined;

  /** The process is gone; the server sees that its connection is closed. */
  async crash(): Promise<void> {
    this.isDead = true;
    await this.#leave?.();
  }

  override acquire(...args: Parameters<LockStore['acquire']>) {
    return this.isDead ? never() : super.acquire(...args);
  }

  override renew(...args: Parameters<LockStore['renew']>) {
    return this.isDead ? never() : super.renew(...args);
  }

  override release(...args: Parameters<LockStore['release']>) {
    return this.isDead ? never() : super.release(...args);
  }

  override async subscribe(process: string, listener: StoreListener): Promise<Unsubscribe> {
    const leave = await super.subscribe(process, (message) => {
      if (!this.isDead) listener(message);
    });
    this.#leave = leave;
    return leave;
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** Three processes on one store, and all that they were told. */
class World {
  readonly clock = new ManualClock();
  readonly fake = new FakeStore(this.clock);
  readonly entries: Entry[] = [];
  readonly held: { readonly process: number; readonly held: Held }[] = [];
  readonly ways: Way[] = [];
  readonly processes: Recorder[] = [];

  constructor(between: (store: LockStore) => LockStore = (store) => store) {
    for (let n = 0; n < 3; n++) {
      const way = new Way(between(this.fake));
      const recorder = new Recorder(
        `p${n}`,
        () => this.clock.now().monoMs,
        (entry) => this.entries.push(entry),
      );
      recorder.follow(buildLocks({ store: recorder.watched(way), leaseMs: 3_000, waitMs: 3_600_000 }, this.clock));
      this.ways.push(way);
      this.processes.push(recorder);
    }
  }

  /** How many acquires of a process wait, or are on their way. */
  readonly pending: number[] = [0, 0, 0];

  acquire(process: number, options: AcquireOptions = {}): void {
    if (this.ways[process]?.isDead) return;
    this.pending[process]! += 1;
    this.processes[process]
      ?.acquire(key, options)
      .then(
        (held) => this.held.push({ process, held }),
        // Refused: the history has it.
        () => {},
      )
      .finally(() => {
        this.pending[process]! -= 1;
      });
  }

  release(at: number): void {
    if (this.held.length === 0) return;
    const [one] = this.held.splice(at % this.held.length, 1);
    if (!this.ways[one!.process]?.isDead) one?.held.release().catch(() => {});
  }

  async crash(process: number): Promise<void> {
    await this.ways[process]?.crash();
    this.entries.push({ at: this.clock.now().monoMs, kind: 'killed', process: `p${process}` });
  }

  /** Nothing goes wrong any more: who lives is served, and everything ends. */
  async end(): Promise<void> {
    this.fake.heal();
    const waiting = (): number => this.ways.reduce((sum, way, n) => sum + (way.isDead ? 0 : this.pending[n]!), 0);
    for (let n = 0; n < 3; n++) this.acquire(n);
    for (let round = 0; round < 60 && waiting() + this.held.length > 0; round++) {
      await this.clock.advance(1_500);
      while (this.held.length > 0) this.release(0);
    }
    expect(waiting()).toBe(0);
    // The next one clears away what the dead have left, once their time is over.
    await this.clock.advance(10_000);
    this.acquire(2);
    await this.clock.advance(10_000);
    this.release(0);
    for (const { locks } of this.processes) {
      const closing = locks.close({ drainMs: 0 });
      await this.clock.advance(20_000);
      await closing;
      processState().created.delete(locks);
    }
    expect(violationsOf(this.entries, { fifo: false })).toEqual([]);
    expect(await this.fake.remains()).toEqual([]);
  }
}

type Model = Record<string, never>;

class Step implements fc.AsyncCommand<Model, World> {
  readonly #name: string;
  readonly #take: (world: World) => unknown;

  constructor(name: string, take: (world: World) => unknown) {
    this.#name = name;
    this.#take = take;
  }

  check(): boolean {
    return true;
  }

  async run(_: Model, world: World): Promise<void> {
    await this.#take(world);
    await world.clock.settle();
    expect(violationsOf(world.entries, { fifo: false }).filter(({ rule }) => rule !== 'release')).toEqual([]);
  }

  toString(): string {
    return this.#name;
  }
}

const process_ = fc.nat(2);
const shortMs = fc.integer({ min: 1, max: 4_000 });
const operation = fc.constantFrom<StoreOperation>('acquire', 'renew', 'release');
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.constant({ kind: 'lostReply' } as const),
  fc.constant({ kind: 'lostCall' } as const),
  fc.record({ kind: fc.constantFrom('lateReply' as const, 'lateCall' as const, 'duplicate' as const), ms: shortMs }),
  fc.constant({ kind: 'rejectedReply', error: new Error('reset') } as const),
);

const steps = [
  process_.map((n) => new Step(`acquire in p${n}`, (world) => world.acquire(n))),
  process_.map((n) => new Step(`impatient acquire in p${n}`, (world) => world.acquire(n, { waitMs: 2_000 }))),
  fc.nat(5).map((n) => new Step(`release ${n}`, (world) => world.release(n))),
  fc.nat(5).map((n) => new Step(`release ${n}!`, (world) => world.release(n))),
  shortMs.map((ms) => new Step(`${ms} ms pass`, (world) => world.clock.advance(ms))),
  shortMs.map((ms) => new Step(`${ms} ms pass at once`, (world) => world.clock.skip(ms))),
  fc
    .tuple(operation, fault)
    .map(([name, one]) => new Step(`next ${name}: ${one.kind}`, (world) => world.fake.next(name, one))),
  fc.boolean().map(
    (isMute) =>
      new Step(`messages ${isMute ? 'get lost' : 'arrive'}`, (world) => {
        world.fake.isMute = isMute;
      }),
  ),
  fc.nat(1).map((n) => new Step(`p${n} crashes`, (world) => world.crash(n))),
];

const bounds = { seed, numRuns: runs, interruptAfterTimeLimit: mostMs, markInterruptAsFailure: false };

it(
  'Whatever goes wrong between three processes and their store: one owner, rising fences, one release for each hold, and all live waiters are served',
  async () => {
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.commands(steps, { maxCommands: 25 }), async (commands) => {
        count += 1;
        const world = new World();
        await fc.asyncModelRun(() => ({ model: {}, real: world }), commands);
        await world.end();
      }),
      bounds,
    );
    process.stdout.write(`exploration: ${count} runs of steps and faults\n`);
  },
  2 * mostMs + 30_000,
);

it('The exploration finds a store that is never polled', async () => {
  const property = fc.asyncProperty(fc.commands(steps, { maxCommands: 25 }), async (commands) => {
    const world = new World((store) => new NoPoll(store));
    await fc.asyncModelRun(() => ({ model: {}, real: world }), commands);
    await world.end();
  });
  expect((await fc.check(property, { seed, numRuns: 200, endOnFailure: true })).failed).toBe(true);
});

it(
  'In whatever order calls and replies of three processes arrive: one owner, and each is served',
  async () => {
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(process_, { minLength: 2, maxLength: 6 }), async (scheduler, order) => {
        count += 1;
        const world = new World((store) => scheduled(store, scheduler));
        const all = order.map(async (n) => {
          const held = await world.processes[n]?.acquire(key);
          await scheduler.schedule(Promise.resolve(), 'work');
          await held?.release();
        });
        await scheduler.waitFor(Promise.all(all));
        const closing = world.processes.map(({ locks }) => locks.close({ drainMs: 0 }));
        await scheduler.waitFor(Promise.all(closing));
        expect(violationsOf(world.entries, { fifo: false })).toEqual([]);
        expect(await world.fake.remains()).toEqual([]);
      }),
      { ...bounds, numRuns: runs / 2, interruptAfterTimeLimit: mostMs / 3 },
    );
    process.stdout.write(`exploration: ${count} orders of calls and replies\n`);
  },
  2 * mostMs + 30_000,
);

/** Each call, reply and message waits for the scheduler. */
function scheduled(store: LockStore, scheduler: fc.Scheduler): LockStore {
  const slow = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
    await scheduler.schedule(Promise.resolve(), `call ${name}`);
    const reply = await call();
    await scheduler.schedule(Promise.resolve(), `reply ${name}`);
    return reply;
  };
  return {
    capabilities: store.capabilities,
    acquire: (request, terms) => slow('acquire', async () => store.acquire(request, terms)),
    renew: (request, terms) => slow('renew', async () => store.renew(request, terms)),
    release: (request, terms) => slow('release', async () => store.release(request, terms)),
    inspect: (id) => store.inspect(id),
    forceRelease: (id, fence) => store.forceRelease(id, fence),
    subscribe: (name, listener) =>
      store.subscribe(name, (message) => {
        void scheduler.schedule(Promise.resolve(), 'message').then(() => listener(message));
      }),
  };
}
