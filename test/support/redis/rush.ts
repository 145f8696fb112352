import { setTimeout as sleep } from 'node:timers/promises';
import { getLock, type Hold, isLockError, type Locks, runInTrace } from 'reenlock';
import { until } from '../until.ts';

/** What came of a rush. */
export interface RushReport {
  /** How many routines ran. */
  readonly holds: number;
  /** How often a routine began while another's hold of the key said that it held. */
  readonly doubles: number;
  /** How often a routine began with a fence that was not above all before it on its key. */
  readonly fallenFences: number;
  /** How many runs ended with each error code; any other error by its message. */
  readonly errors: Readonly<Record<string, number>>;
}

/** Many owners in many processes who lock a few keys all the time, until they are told to stop. */
export class Rush {
  readonly #keys: readonly string[];
  readonly #inside = new Map<string, Set<Hold>>();
  readonly #fences = new Map<string, number>();
  readonly #workers: readonly Promise<void>[];
  readonly #errors: Record<string, number> = {};
  #holds = 0;
  #doubles = 0;
  #fallenFences = 0;
  #isOver = false;

  /** Each process gets `perKey` owners for each key, who do nothing else. */
  constructor(processes: readonly Locks[], keys: readonly string[], perKey: number) {
    this.#keys = keys;
    for (const key of keys) this.#inside.set(key, new Set());
    this.#workers = processes.flatMap((locks) =>
      keys.flatMap((key) => Array.from({ length: perKey }, () => this.#work(locks, key))),
    );
  }

  get holds(): number {
    return this.#holds;
  }

  /** Waits until so many more routines have run, and one at least on each of these keys. */
  async more(count: number, keys: readonly string[] = this.#keys): Promise<void> {
    const fences = new Map(this.#fences);
    const before = this.#holds;
    const isDone = (): boolean =>
      this.#holds >= before + count && keys.every((key) => this.#fences.get(key) !== fences.get(key));
    await until(isDone);
  }

  async end(): Promise<RushReport> {
    this.#isOver = true;
    await Promise.all(this.#workers);
    const { holds } = this;
    return { holds, doubles: this.#doubles, fallenFences: this.#fallenFences, errors: this.#errors };
  }

  async #work(locks: Locks, key: string): Promise<void> {
    while (!this.#isOver) {
      try {
        await runInTrace(() => getLock(key).run((hold) => this.#routine(key, hold)), { locks });
      } catch (error) {
        const name = isLockError(error) ? error.code : String(error);
        this.#errors[name] = (this.#errors[name] ?? 0) + 1;
        // Refused at once: without a pause it would be a busy loop.
        await sleep(20);
      }
    }
  }

  async #routine(key: string, hold: Hold): Promise<void> {
    const inside = this.#inside.get(key)!;
    this.#holds += 1;
    if ([...inside].some((other) => other.isHeld())) this.#doubles += 1;
    if (hold.fence <= (this.#fences.get(key) ?? 0)) this.#fallenFences += 1;
    this.#fences.set(key, Math.max(hold.fence, this.#fences.get(key) ?? 0));
    inside.add(hold);
    await sleep(2);
    inside.delete(hold);
  }
}
