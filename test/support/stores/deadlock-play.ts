import fc from 'fast-check';
import {
  type Hold,
  type LockEvents,
  type LockMode,
  type LockStore,
  type Locks,
  type LocksOptions,
  lock,
} from 'reenlock';
import type { Clock } from '../../../src/core/base/clock.ts';
import type { EdgeStore, InspectReply } from '../../../src/core/model/store.ts';
import { buildLocks } from '../../../src/core/runtime/locks.ts';
import { type Job, startJob } from './set-up.ts';
import { ringOf, stood, type WaitState } from './wait-history.ts';

/** What one of four traces does next, on one of three keys. */
type Step =
  | {
      readonly kind: 'acquire';
      readonly job: number;
      /** Several are a batch. */
      readonly keys: readonly number[];
      readonly waitMs: number;
      readonly mode: LockMode;
      readonly priority: number;
    }
  | { readonly kind: 'release'; readonly job: number; readonly key: number }
  | { readonly kind: 'abort'; readonly job: number }
  | { readonly kind: 'advance'; readonly ms: number };

export interface Schedule {
  readonly steps: readonly Step[];
  /** How long the first calls are on their way, there and back; -1: lost, if it is about an edge. */
  readonly delays: readonly number[];
}

const keys = ['k0', 'k1', 'k2'];
const job = fc.nat(3);
const key = fc.nat(keys.length - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('acquire' as const),
      job,
      keys: fc.oneof(
        { weight: 4, arbitrary: fc.tuple(key) },
        { weight: 1, arbitrary: fc.constantFrom([0, 1], [2, 0], [2, 1, 0]) },
      ),
      waitMs: fc.constantFrom(20, 300, 60_000, 60_000),
      mode: fc.constantFrom<LockMode>('write', 'write', 'read'),
      priority: fc.constantFrom(0, 0, 0, -1, 100),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('release' as const), job, key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('abort' as const), job }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.constantFrom(0, 3, 25, 400) }) },
);

export const schedule: fc.Arbitrary<Schedule> = fc.record({
  steps: fc.array(step, { minLength: 6, maxLength: 24 }),
  delays: fc.array(fc.constantFrom(0, 0, 0, 2, 10, 30, -1), { maxLength: 80, size: 'max' }),
});

/** Where a schedule is played. */
export interface World {
  readonly clock: Clock;
  /** An empty store. */
  readonly store: LockStore;
  readonly options: LocksOptions;
  /** Whether acquires and releases come late to the store. One that counts on the order of its calls can’t bear it. */
  readonly hasLateCalls: boolean;
  pass(ms: number): Promise<void>;
  /**
   * Lets all that is on its way arrive, and everybody poll, more than once; where time is real, until that has come, or it
   * throws. Answers whether it has: where time is real, it may be otherwise again by then.
   */
  calm(isCalm: () => Promise<boolean>): Promise<boolean>;
  /** Lets work end for which time may have to pass. */
  settled(work: Promise<unknown>): Promise<void>;
}

/** What was met in all plays together. */
export interface Met {
  rings: number;
  staleEdges: number;
}

/** Plays a schedule. Throws unless each ring that was reported stood as a whole, and none that lasts was overlooked. */
export async function play(world: World, { steps, delays }: Schedule, met: Met): Promise<void> {
  const run = new Play(world, delays, met);
  for (const each of steps) await run.step(each);
  await run.check();
  await run.end();
}

/** Four traces in two processes. */
class Play {
  readonly #world: World;
  readonly #met: Met;
  readonly #watched: Watched;
  readonly #locks: readonly Locks[];
  readonly #jobs: readonly Job[];
  readonly #holds = new Map<string, Pick<Hold, 'release'>[]>();
  readonly #waits = new Map<number, AbortController[]>();
  readonly #found: LockEvents['deadlock'][] = [];

  constructor(world: World, delays: readonly number[], met: Met) {
    this.#world = world;
    this.#met = met;
    this.#watched = watch(world, delays, met);
    this.#locks = [0, 1].map(() => buildLocks({ ...world.options, store: this.#watched.store }, world.clock));
    // A cycle of one is a reader that asks to write beside others: the store refuses it without a search.
    const found = (event: LockEvents['deadlock']): void => void (event.cycle.length > 1 && this.#found.push(event));
    for (const locks of this.#locks) locks.on('deadlock', found);
    this.#jobs = [0, 1, 2, 3].map((n) => startJob(this.#locks[n % 2]!, `job-${n}`));
  }

  async step(one: Step): Promise<void> {
    if (one.kind === 'advance') await this.#world.pass(one.ms);
    else if (one.kind === 'acquire') this.#acquire(one);
    else if (one.kind === 'release') void this.#holds.get(`${one.job} ${one.key}`)?.pop()?.release();
    else this.#waits.get(one.job)?.pop()?.abort();
    await this.#world.pass(0);
  }

  async check(): Promise<void> {
    const isCalm = await this.#world.calm(async () => ringOf(await this.#now()).length === 0);
    const states = this.#found.length > 0 ? await Promise.all(this.#watched.history.map(resolved)) : [];
    this.#met.rings += this.#found.length;
    const isFalse = ({ cycle, holdId }: LockEvents['deadlock']): boolean =>
      !states.some((state) => stood(state, cycle, holdId));
    failUnlessNone('false alarms', this.#found.filter(isFalse));
    if (!isCalm) failUnlessNone('overlooked', ringOf(await this.#now()));
  }

  async end(): Promise<void> {
    for (const each of this.#jobs) await this.#world.settled(each.end());
    for (const locks of this.#locks) await this.#world.settled(locks.close({ drainMs: 0 }));
    const left = async (): Promise<unknown[]> =>
      Object.values(await this.#now()).flatMap(({ holds, waiters }) => [...holds, ...waiters]);
    const isEmpty = async (): Promise<boolean> => (await left()).length === 0;
    if (await isEmpty()) return;
    if (!(await this.#world.calm(isEmpty))) failUnlessNone('left behind', await left());
  }

  #acquire({ job, keys: [key, ...others], waitMs, mode, priority }: Extract<Step, { kind: 'acquire' }>): void {
    const abort = new AbortController();
    this.#waits.set(job, [...(this.#waits.get(job) ?? []), abort]);
    const holds = this.#holds.get(`${job} ${key}`) ?? [];
    this.#holds.set(`${job} ${key}`, holds);
    const options = { waitMs, mode, priority, signal: abort.signal };
    const names = [key!, ...others].map((each) => keys[each]!);
    const acquire = (): Promise<Pick<Hold, 'release'>> =>
      names.length === 1 ? lock.acquire(names[0]!, options) : lock.acquireAll(names, options);
    this.#jobs[job]!.in(acquire).then(
      (hold) => void holds.push(hold),
      () => {}, // Timeouts, aborts and deadlocks: the events tell.
    );
  }

  #now(): Promise<WaitState> {
    return resolved(Object.fromEntries(keys.map((id) => [id, this.#world.store.inspect(id)])));
  }
}

/** Ten thousand plays can't afford an `expect` each. */
function failUnlessNone(what: string, found: readonly unknown[]): void {
  if (found.length > 0) throw new Error(`${what}: ${JSON.stringify(found)}`);
}

interface Watched {
  readonly store: LockStore;
  /** All that the locks ever were, after each call that may have changed one. */
  readonly history: Record<string, Promise<InspectReply>>[];
}

/** A store whose calls take their time. The inner one executes calls in the order in which they are made. */
function watch({ store, clock, hasLateCalls }: World, delays: readonly number[], met: Met): Watched {
  const history: Record<string, Promise<InspectReply>>[] = [{}];
  const edges = store.edges as EdgeStore;
  let calls = 0;
  const pause = async (): Promise<void> => {
    calls += 1;
    const ms = delays[calls] ?? 0;
    if (ms > 0) await new Promise<void>((resolve) => clock.after(ms, resolve));
  };
  const slow = async <T>(call: () => Promise<T>, mayBeLost = false): Promise<T> => {
    await pause();
    if (mayBeLost && (delays[calls] ?? 0) < 0) return new Promise(() => {});
    return slowReply(call);
  };
  const slowReply = async <T>(call: () => Promise<T>): Promise<T> => {
    const reply = await call();
    await pause();
    return reply;
  };
  const ofLock = hasLateCalls ? slow : slowReply;
  const seen = <T>(id: string, reply: T): T => {
    history.push({ ...history.at(-1), [id]: store.inspect(id) });
    return reply;
  };
  const watched: LockStore = {
    capabilities: store.capabilities,
    acquire: (request, terms) => ofLock(async () => seen(request.id, store.acquire(request, terms))),
    release: (request, terms) => ofLock(async () => seen(request.id, store.release(request, terms))),
    renew: (request, terms) => store.renew(request, terms),
    inspect: (id) => store.inspect(id),
    forceRelease: (id, fence) => store.forceRelease(id, fence),
    subscribe: (process, listener) => store.subscribe(process, listener),
    edges: {
      set: (owner, edge, ttlMs) => slow(() => edges.set(owner, edge, ttlMs), true),
      clear: (owner, edge) => slow(() => edges.clear(owner, edge), true),
      of: (owner) => slow(() => edges.of(owner)),
      wait: (request) =>
        slow(async () => {
          const reply = await edges.wait(request);
          if (reply.sinceMs === undefined) met.staleEdges += 1;
          return reply;
        }),
    },
  };
  return { store: watched, history };
}

async function resolved(state: Record<string, Promise<InspectReply>>): Promise<WaitState> {
  return Object.fromEntries(await Promise.all(Object.entries(state).map(async ([id, reply]) => [id, await reply])));
}
