import fc from 'fast-check';
import { DeadlockError, LockScopeError, lock, runInTrace } from '../../../src/core/index.ts';
import { isLong, printSeed, seed } from '../../fault/seed.ts';
import { coreTests, type Setup } from '../../support/stores/set-up.ts';

// It plays many trees.
jest.setTimeout(600_000);
printSeed('branches');

const setUp = coreTests();

/** A part of a request: what it locks, and the calls that it makes meanwhile. */
interface Step {
  readonly kind: 'run' | 'runAll' | 'acquire' | 'leave' | 'job';
  readonly keys: readonly string[];
  /** Whether its calls are made at once. */
  readonly isParallel: boolean;
  readonly fails: boolean;
  readonly calls: readonly Step[];
}

const keys = fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 2 });
const treeOf: (depth?: number) => fc.Arbitrary<Step> = fc.memo((depth) =>
  fc.record({
    kind: fc.constantFrom('run', 'run', 'runAll', 'acquire', 'leave', 'job'),
    keys,
    isParallel: fc.boolean(),
    fails: fc.nat(9).map((dice) => dice === 0),
    calls: depth <= 1 ? fc.constant([]) : fc.array(treeOf(), { maxLength: 3 }),
  }),
);
const tree = treeOf(4);

/** A branch as the tree of calls has it, whatever the package makes of it. */
interface Line {
  readonly around: Line | undefined;
}

/** Who is inside of what, kept by the plainest means. */
class Reference {
  readonly violations: string[] = [];
  entered = 0;
  readonly #inside: { key: string; line: Line; isLeft?: boolean }[] = [];

  /** Returns the function that leaves. */
  enter(key: string, line: Line): (isLeft: boolean) => void {
    this.entered += 1;
    // A nested call may have begun since the branch got its hold, and before its code goes on.
    const isBeside = ({ line: other }: { line: Line }): boolean => !isWithin(line, other) && !isWithin(other, line);
    const others = this.#inside.filter((other) => other.key === key && isBeside(other));
    if (others.length > 0) this.violations.push(`${key}: ${others.length} of other branches`);
    const entry = { key, line, isLeft: false };
    this.#inside.push(entry);
    return (isLeft) => {
      if (isLeft) entry.isLeft = true;
      else this.#inside.splice(this.#inside.indexOf(entry), 1);
    };
  }

  /** What a branch has left belongs to the one around it; what a request or job has left is released. */
  end(line: Line, isScope: boolean): void {
    for (const entry of [...this.#inside]) {
      if (entry.line !== line || !entry.isLeft) continue;
      if (isScope) this.#inside.splice(this.#inside.indexOf(entry), 1);
      else entry.line = line.around as Line;
    }
  }
}

function isWithin(line: Line, other: Line): boolean {
  for (let each: Line | undefined = line; each !== undefined; each = each.around) if (each === other) return true;
  return false;
}

/** Plays one request's tree of calls. */
class Player {
  readonly #reference: Reference;
  readonly #pause: () => Promise<void>;

  constructor(reference: Reference, pause: () => Promise<void>) {
    this.#reference = reference;
    this.#pause = pause;
  }

  async play(step: Step, around: Line): Promise<void> {
    const line = { around };
    const work = async (held: readonly string[], inside: Line): Promise<void> => {
      const leave = held.map((key) => this.#reference.enter(key, inside));
      try {
        await this.#pause();
        await this.#calls(step, inside);
        if (step.fails) throw new Error('planned');
      } finally {
        for (const each of leave) each(step.kind === 'leave');
        if (inside === line) this.#reference.end(line, step.kind === 'job');
      }
    };
    const [key = 'a'] = step.keys;
    if (step.kind === 'run') return lock.run(key, () => work([key], line));
    if (step.kind === 'runAll') return lock.runAll(step.keys, () => work(step.keys, line));
    if (step.kind === 'job') return runInTrace(() => work([], line));
    const hold = await lock.acquire(key);
    try {
      await work([key], around);
    } finally {
      if (step.kind === 'acquire') await hold.release();
    }
  }

  async #calls({ calls, isParallel }: Step, line: Line): Promise<void> {
    const call = (step: Step): Promise<void> =>
      this.play(step, line).catch((error: unknown) => {
        const isPlanned = error instanceof DeadlockError || (error as Error).message === 'planned';
        if (!isPlanned && !(error instanceof LockScopeError)) throw error;
      });
    if (isParallel) await Promise.all(calls.map(call));
    else for (const each of calls) await call(each);
  }
}

/** Plays some requests at once, and returns what was seen. */
async function playAll(setup: Setup, trees: readonly Step[]): Promise<Reference> {
  const reference = new Reference();
  const { clock, locks } = setup;
  const player = new Player(reference, () => new Promise((resolve) => void clock.after(3, resolve)));
  let left = trees.length;
  const errors: unknown[] = [];
  for (const each of trees) {
    const root: Line = { around: undefined };
    runInTrace(() => player.play({ ...each, kind: 'run' }, root), { locks })
      .catch((error: unknown) => {
        if (!(error instanceof DeadlockError) && (error as Error).message !== 'planned') errors.push(error);
      })
      .finally(() => {
        reference.end(root, true);
        left -= 1;
      });
  }
  for (let round = 0; round < 400 && left > 0; round++) await clock.advance(250);
  expect({ left, errors }).toEqual({ left: 0, errors: [] });
  return reference;
}

it('In any tree of calls, nested calls enter, branches exclude each other, and nothing stays held', async () => {
  let entered = 0;
  let trees = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(tree, { minLength: 1, maxLength: 3 }), async (requests) => {
      const setup = setUp({ waitMs: Number.POSITIVE_INFINITY, maxHoldMs: 2 ** 31 - 1 });
      const reference = await playAll(setup, requests);
      entered += reference.entered;
      trees += requests.length;
      expect(reference.violations).toEqual([]);
      await setup.clock.settle();
      expect(await setup.store.remains()).toEqual([]);
    }),
    { seed, numRuns: isLong ? 50_000 : 500 },
  );
  process.stdout.write(`branches: ${trees} trees, ${entered} times inside\n`);
});
