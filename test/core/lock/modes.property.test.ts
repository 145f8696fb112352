import fc from 'fast-check';
import { getLock, type Hold, isLockError, type LockMode, lock } from '../../../src/core/index.ts';
import { coreTests, type Job, type Outcome, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

// It plays many schedules.
jest.setTimeout(60_000);

const setUp = coreTests();

/** Two scopes of each trace: one acquire of either is an entry from elsewhere for the other. */
const traces = ['a', 'a', 'b', 'b', 'c'];

type Step =
  | {
      readonly kind: 'acquire';
      readonly scope: number;
      readonly mode: LockMode;
      readonly leaseMs: number;
      readonly priority: number;
      readonly how: 'acquire' | 'tryAcquire';
    }
  | { readonly kind: 'release'; readonly index: number }
  | { readonly kind: 'releaseByKey'; readonly scope: number }
  | { readonly kind: 'releaseAgain'; readonly index: number }
  | { readonly kind: 'advance'; readonly ms: number };

const scope = fc.nat(traces.length - 1);
const index = fc.nat(20);
const step = fc.oneof<fc.WeightedArbitrary<Step>[]>(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('acquire'),
      scope,
      mode: fc.constantFrom<LockMode>('read', 'read', 'write'),
      leaseMs: fc.integer({ min: 100, max: 5_000 }),
      priority: fc.constantFrom(0, 0, 3, -3),
      how: fc.constantFrom('acquire', 'acquire', 'tryAcquire'),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('release'), index }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('releaseByKey'), scope }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('releaseAgain'), index }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance'), ms: fc.integer({ min: 1, max: 3_000 }) }) },
);

interface Kept {
  readonly scope: number;
  readonly mode: LockMode;
  readonly outcome: Outcome<Hold | null>;
  isReleased: boolean;
}

/** Five scopes of three traces on one key, in two processes; what each was told is kept beside. */
class Play {
  readonly #setup: Setup;
  readonly #jobs: readonly Job[];
  readonly #all: Kept[] = [];
  /** Who wrote under a fence. */
  readonly #writers = new Map<number, string>();

  constructor(setup: Setup) {
    const there = setup.sibling({ maxHoldMs: 1_000_000, waitMs: 1_000_000 });
    this.#setup = setup;
    this.#jobs = traces.map((trace, i) => (i % 2 ? there : setup).job(trace));
  }

  async play(one: Step): Promise<void> {
    if (one.kind === 'acquire') await this.#acquire(one);
    else if (one.kind === 'advance') await this.#setup.clock.advance(one.ms);
    else if (one.kind === 'releaseByKey') await this.#releaseByKey(one.scope);
    else if (one.kind === 'release') await this.#release(this.#pick(this.#held(), one.index));
    else await this.#releaseAgain(one.index);
    await this.check();
  }

  async check(): Promise<void> {
    const held = this.#held();
    // A grant is renewed until it is released: nobody has lost anything.
    for (const { outcome } of held) expect(outcome.value?.isHeld()).toBe(true);
    for (const [i, { in: inJob }] of this.#jobs.entries()) {
      const own = held.filter((kept) => kept.scope === i);
      expect(inJob(() => [getLock('key').holdCount(), getLock('key').isHeld()])).toEqual([own.length, own.length > 0]);
    }
    // A writer is alone, but for its own trace.
    const owners = new Set(held.map((kept) => traces[kept.scope]));
    if (held.some(({ mode }) => mode === 'write')) expect(owners.size).toBe(1);
    for (const { outcome, scope, mode } of held) {
      const fence = outcome.value!.fence;
      if (mode === 'read') continue;
      expect(this.#writers.get(fence) ?? traces[scope]).toBe(traces[scope]);
      this.#writers.set(fence, traces[scope]!);
    }
    const { holds, nowMs } = await this.#setup.store.inspect('key');
    expect(new Set(holds.map(({ owner }) => owner))).toEqual(owners);
    // The store keeps each for at least as long as it is told.
    const longest = Math.max(0, ...holds.map(({ endMs }) => endMs - nowMs));
    for (const { outcome } of held) expect(outcome.value!.remainingMs()).toBeLessThanOrEqual(longest);
  }

  /** Releases all that is held, until nobody waits any more. */
  async end(): Promise<void> {
    for (let held = this.#held(); held.length > 0; held = this.#held()) {
      for (const kept of held) await this.#release(kept);
      await this.check();
    }
    expect(this.#all.filter(({ outcome }) => outcome.state === 'pending')).toEqual([]);
    expect(await this.#setup.store.remains()).toEqual([]);
    // Renewal has stopped with the last release of each.
    const renewals = this.#setup.store.count('renew');
    await this.#setup.clock.advance(60_000);
    expect(this.#setup.store.count('renew')).toBe(renewals);
  }

  #held(): Kept[] {
    return this.#all.filter(({ outcome, isReleased }) => outcome.value && !isReleased);
  }

  #pick(among: readonly Kept[], at: number): Kept | undefined {
    return among[at % among.length];
  }

  async #acquire({ scope, mode, leaseMs, priority, how }: Extract<Step, { kind: 'acquire' }>): Promise<void> {
    const { store, clock } = this.#setup;
    const own = this.#held().filter((kept) => kept.scope === scope);
    const isLocal = own.some((kept) => kept.mode === 'write' || mode === 'read');
    const before = own.map(({ outcome }) => outcome.value!.remainingMs());
    const calls = store.count('acquire');
    const options = { mode, leaseMs, priority };
    const waiting = { waitMs: 1_000_000 };
    const call = () =>
      how === 'acquire' ? lock.acquire('key', { ...options, ...waiting }) : lock[how]('key', options);
    const outcome = await clock.settled(outcomeOf<Hold | null>(this.#jobs[scope]!.in(call)));
    // Who enters as a writer's or reader's own has the mode of what it entered.
    const entered = own.some((kept) => kept.mode === mode) ? mode : isLocal ? 'write' : mode;
    this.#all.push({ scope, mode: entered, outcome, isReleased: false });
    if (isLocal) {
      expect(store.count('acquire')).toBe(calls);
      expect(outcome.state).toBe('fulfilled');
    }
    if (how === 'tryAcquire') expect(outcome.state).toBe('fulfilled');
    if (outcome.state === 'rejected') {
      expect(isLockError(outcome.error) && outcome.error.code).toBe('ERR_LOCK_DEADLOCK');
      expect([mode, own.length > 0 || this.#reads(scope)]).toEqual(['write', true]);
    }
    // An inner acquire never shortens an outer one's lease.
    for (const [i, { outcome: outer }] of own.entries())
      expect(outer.value!.remainingMs()).toBeGreaterThanOrEqual(before[i]!);
  }

  /** Whether the scope's trace holds anything. */
  #reads(scope: number): boolean {
    return this.#held().some((kept) => traces[kept.scope] === traces[scope]);
  }

  async #release(kept: Kept | undefined): Promise<void> {
    if (kept === undefined) return;
    kept.isReleased = true;
    await kept.outcome.value?.release();
    expect(kept.outcome.value?.isHeld()).toBe(false);
    await this.#setup.clock.settle();
  }

  /** The newest of the scope; without any it is an error, and nobody is harmed: `check` looks. */
  async #releaseByKey(scope: number): Promise<void> {
    const own = this.#held().filter((kept) => kept.scope === scope);
    const outcome = outcomeOf(this.#jobs[scope]!.in(() => lock.release('key')));
    await this.#setup.clock.settle();
    if (own.length === 0) expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_NOT_HELD' });
    else {
      expect(outcome.state).toBe('fulfilled');
      const gone = own.filter((kept) => !kept.outcome.value!.isHeld());
      expect(gone).toHaveLength(1);
      gone[0]!.isReleased = true;
    }
  }

  async #releaseAgain(at: number): Promise<void> {
    const over = this.#all.filter(({ isReleased }) => isReleased);
    const calls = this.#setup.store.count('release');
    await this.#pick(over, at)?.outcome.value?.release();
    expect(this.#setup.store.count('release')).toBe(calls);
  }
}

describe('Nested scopes of several traces that read and write', () => {
  it('A writer is alone with its trace, counts are right, all are served, and nothing is renewed or left after', async () => {
    let most = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }), async (steps) => {
        const setup = setUp({ maxHoldMs: 1_000_000, waitMs: 1_000_000 });
        const entered = setup.events('entered');
        const play = new Play(setup);
        for (const one of steps) await play.play(one);
        await play.end();
        most = Math.max(most, entered.length);
      }),
      { numRuns: 120 },
    );
    expect(most).toBeGreaterThan(1);
  });
});
