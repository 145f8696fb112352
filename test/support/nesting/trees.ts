import fc from 'fast-check';
import {
  currentTrace,
  DeadlockError,
  type Hold,
  LockScopeError,
  lock,
  type RunInTraceOptions,
  runInTrace,
} from '../../../src/core/index.ts';

/** A part of a request: what it locks, and the calls that it makes meanwhile. */
export interface Step {
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
/** The calls of one request. */
export const tree: fc.Arbitrary<Step> = treeOf(4);

/** A branch as the tree of calls has it, whatever the package makes of it. */
export interface Line {
  readonly around: Line | undefined;
  /** Its trace id, and the way to it in the tree. */
  readonly path: string;
}

/** Hears of all that a play locks. */
export interface Witness {
  /** Called when a request or job begins, in its context. */
  begin?(): void;
  /** A branch has a hold. Returns the function that is called before it releases it, or leaves it to the branch around. */
  enter(hold: Hold, line: Line): (isLeft: boolean) => void;
  /** A branch is over. What it has left belongs to the one around it; what a request or job has left is released. */
  end(line: Line, isScope: boolean): void;
}

/** Who is inside of what, kept by the plainest means. */
export class Reference implements Witness {
  readonly violations: string[] = [];
  entered = 0;
  readonly #inside: { key: string; line: Line; isLeft?: boolean }[] = [];

  enter({ key }: Hold, line: Line): (isLeft: boolean) => void {
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
export class Player {
  readonly #witness: Witness;
  readonly #pause: (line: Line, holds: readonly Hold[]) => Promise<void>;
  readonly #prefix: string;
  readonly #isExpected: (error: unknown) => boolean;
  #lines = 0;

  /** Each branch has a pause, each key gets the prefix. No call may fail with what is not expected. */
  constructor(
    witness: Witness,
    pause: (line: Line, holds: readonly Hold[]) => Promise<void>,
    prefix = '',
    isExpected: (error: unknown) => boolean = isExpectedWithoutFaults,
  ) {
    this.#witness = witness;
    this.#pause = pause;
    this.#prefix = prefix;
    this.#isExpected = isExpected;
  }

  /** Plays a request, and resolves at its end. Rejects with what a request must not fail with. */
  async request(step: Step, options: RunInTraceOptions): Promise<void> {
    const play = async (): Promise<void> => {
      const root = { around: undefined, path: String(currentTrace()?.traceId) };
      this.#witness.begin?.();
      // Before its end, which releases what is left.
      await this.#play({ ...step, kind: 'run' }, root).finally(() => this.#witness.end(root, true));
    };
    await runInTrace(play, options).catch(this.#assertExpected);
  }

  async #play(step: Step, around: Line): Promise<void> {
    this.#lines += 1;
    const line = { around, path: `${around.path}/${this.#lines}` };
    const work = async (holds: readonly Hold[], inside: Line): Promise<void> => {
      const leave = holds.map((hold) => this.#witness.enter(hold, inside));
      try {
        await this.#pause(inside, holds);
        await this.#calls(step, inside);
        if (step.fails) throw new Error('planned');
      } finally {
        for (const each of leave) each(step.kind === 'leave');
        if (inside === line) this.#witness.end(line, step.kind === 'job');
      }
    };
    const keys = step.keys.map((key) => `${this.#prefix}${key}`);
    const [key] = keys as [string];
    if (step.kind === 'run') return lock.run(key, (hold) => work([hold], line));
    if (step.kind === 'runAll') return lock.runAll(keys, ({ holds }) => work([...holds.values()], line));
    if (step.kind === 'job') {
      return runInTrace(() => {
        this.#witness.begin?.();
        return work([], line);
      });
    }
    const hold = await lock.acquire(key);
    try {
      await work([hold], around);
    } finally {
      if (step.kind === 'acquire') await hold.release();
    }
  }

  async #calls({ calls, isParallel }: Step, line: Line): Promise<void> {
    const call = (each: Step): Promise<void> => this.#play(each, line).catch(this.#assertExpected);
    if (isParallel) await Promise.all(calls.map(call));
    else for (const each of calls) await call(each);
  }

  readonly #assertExpected = (error: unknown): void => {
    if ((error as Error).message !== 'planned' && !this.#isExpected(error)) throw error;
  };
}

/** Two branches may want two keys in opposite orders, and a call may come after the end of its branch. */
function isExpectedWithoutFaults(error: unknown): boolean {
  return error instanceof DeadlockError || error instanceof LockScopeError;
}
