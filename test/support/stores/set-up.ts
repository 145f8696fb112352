import { AsyncLocalStorage } from 'node:async_hooks';
import { processState } from '../../../src/core/base/process-state.ts';
import type { AcquireOptions, Hold, LockEvents, Locks, LocksOptions } from '../../../src/core/index.ts';
import { lock, runInTrace } from '../../../src/core/index.ts';
import type { LockStore } from '../../../src/core/model/store.ts';
import { buildLocks } from '../../../src/core/runtime/locks.ts';
import { ManualClock } from '../clock/manual-clock.ts';
import { gate } from '../gate.ts';
import { FakeStore } from './fake-store.ts';

/** A job that lives until a test ends it; what runs in it belongs to its trace. */
export interface Job {
  /** Calls a function in the job's scope. */
  in<T>(run: () => T): T;
  /** Ends the job; what it holds is given back. */
  end(): Promise<void>;
}

/** One process's `Locks` on a store that does as it is told, and a clock that stands still. */
export interface Setup {
  readonly clock: ManualClock;
  readonly store: FakeStore;
  readonly locks: Locks;
  /** A new job, of a trace of its own unless one is named. */
  job(traceId?: string): Job;
  /** Collects what listeners of an event are told. */
  events<E extends keyof LockEvents>(event: E): LockEvents[E][];
  /** Another process on the same store and clock. */
  sibling(options?: LocksOptions): Setup;
}

/**
 * Answers the function that sets one up. After every test it ends all jobs, heals the store, closes all `Locks`, and
 * looks that nothing is left: no timer, no hold, no waiter. Call it at the top level of the file. The locks may see the
 * store as something else: `as` says as what.
 */
export function coreTests(
  as: (store: FakeStore, clock: ManualClock) => LockStore = (store) => store,
): (options?: LocksOptions) => Setup {
  const setups: Setup[] = [];
  const jobs: Job[] = [];

  const build = (clock: ManualClock, store: FakeStore, options: LocksOptions | undefined): Setup => {
    const locks = buildLocks({ store: as(store, clock), ...options }, clock);
    const setup: Setup = {
      clock,
      store,
      locks,
      job: (traceId) => {
        const job = startJob(locks, traceId);
        jobs.push(job);
        return job;
      },
      events: (event) => {
        const seen: LockEvents[typeof event][] = [];
        locks.on(event, (payload) => void seen.push(payload));
        return seen;
      },
      sibling: (ofSibling) => build(clock, store, ofSibling),
    };
    setups.push(setup);
    return setup;
  };

  afterEach(async () => {
    for (const { store } of setups) store.heal();
    for (const job of jobs.splice(0)) await job.end();
    for (const { clock, locks, store } of setups.splice(0)) {
      const closing = locks.close({ drainMs: 0 });
      // Releases that met a fault are tried again until the lease is over.
      await clock.advance(60_000);
      await closing;
      expect(await store.remains()).toEqual([]);
      expect(clock.timerCount).toBe(0);
    }
    processState().configured = undefined;
  });

  return (options) => {
    const clock = new ManualClock();
    return build(clock, new FakeStore(clock), options);
  };
}

/** Somebody else's hold on `key`. */
export function taken(setup: Setup, options: AcquireOptions = {}): Promise<Hold> {
  return setup.job().in(() => lock.acquire('key', options));
}

/** An acquire of `key` by a job of its own, as far as it comes without time passing. */
export function queued(setup: Setup, options: AcquireOptions = {}): Promise<Outcome<Hold>> {
  return setup.clock.settled(outcomeOf(setup.job().in(() => lock.acquire('key', options))));
}

/** Runs a job that a controller can stop, as far as it comes without time passing. */
export async function stoppable<T>(
  { locks, clock }: Setup,
  routine: (controller: AbortController) => Promise<T>,
): Promise<[AbortController, Outcome<T>]> {
  const controller = new AbortController();
  const running = runInTrace(() => routine(controller), { locks, signal: controller.signal });
  return [controller, await clock.settled(outcomeOf(running))];
}

/** Work that lasts for a while, and how many have done it at once at most. */
export function crowdOf({ clock }: Setup): { readonly most: number; readonly work: () => Promise<void> } {
  let [inside, most] = [0, 0];
  return {
    get most() {
      return most;
    },
    async work() {
      inside += 1;
      most = Math.max(most, inside);
      await clock.advance(100);
      inside -= 1;
    },
  };
}

/** What has become of a promise, without waiting for it. */
export interface Outcome<T> {
  state: 'pending' | 'fulfilled' | 'rejected';
  value?: T;
  error?: unknown;
  /** Resolves when it is no longer pending. */
  readonly settled: Promise<void>;
}

/** Watches a promise; its rejection is taken care of. */
export function outcomeOf<T>(promise: Promise<T>): Outcome<T> {
  const settled = promise.then(
    (value) => void Object.assign(outcome, { state: 'fulfilled', value }),
    (error: unknown) => void Object.assign(outcome, { state: 'rejected', error }),
  );
  const outcome: Outcome<T> = { state: 'pending', settled };
  return outcome;
}

/** Starts a job that lives until it is ended. */
export function startJob(locks: Locks, traceId: string | undefined): Job {
  const work = gate();
  let run: Job['in'] = (routine) => routine();
  const over = runInTrace(
    () => {
      run = AsyncLocalStorage.snapshot();
      return work;
    },
    { locks, traceId },
  );
  return {
    in: (routine) => run(routine),
    end: () => {
      work.open();
      return over;
    },
  };
}
