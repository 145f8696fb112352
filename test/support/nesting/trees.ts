import fc from 'fast-check';
import { DeadlockError, LockScopeError, lock, type RunInTraceOptions, runInTrace } from '../../../src/core/index.ts';

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
}

/** Who is inside of what, kept by the plainest means. */
export class Reference {
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
export class Player {
  readonly #reference: Reference;
  readonly #pause: () => Promise<void>;

  readonly #prefix: string;

  /** Each key gets the prefix. */
  constructor(reference: Reference, pause: () => Promise<void>, prefix = '') {
    this.#reference = reference;
    this.#pause = pause;
    this.#prefix = prefix;
  }

  /** Plays a request, and resolves at its end. Rejects with what a request must not fail with. */
  async request(step: Step, options: RunInTraceOptions): Promise<void> {
    const root: Line = { around: undefined };
    await runInTrace(() => this.#play({ ...step, kind: 'run' }, root), options).catch(assertExpected);
    this.#reference.end(root, true);
  }

  async #play(step: Step, around: Line): Promise<void> {
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
    const keys = step.keys.map((key) => `${this.#prefix}${key}`);
    const [key] = keys as [string];
    if (step.kind === 'run') return lock.run(key, () => work([key], line));
    if (step.kind === 'runAll') return lock.runAll(keys, () => work(keys, line));
    if (step.kind === 'job') return runInTrace(() => work([], line));
    const hold = await lock.acquire(key);
    try {
      await work([key], around);
    } finally {
      if (step.kind === 'acquire') await hold.release();
    }
  }

  async #calls({ calls, isParallel }: Step, line: Line): Promise<void> {
    const call = (each: Step): Promise<void> => this.#play(each, line).catch(assertExpected);
    if (isParallel) await Promise.all(calls.map(call));
    else for (const each of calls) await call(each);
  }
}

/** Two branches may want two keys in opposite orders, and a call may come after the end of its branch. */
function assertExpected(error: unknown): void {
  const isPlanned = error instanceof DeadlockError || (error as Error).message === 'planned';
  if (!isPlanned && !(error instanceof LockScopeError)) throw error;
}
