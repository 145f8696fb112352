import { setTimeout as sleep } from 'node:timers/promises';
import { getLock, type Hold, isLockError, type LockMode, type Locks, runInTrace } from 'reenlock';
import { until } from '../until.ts';

/** What came of a rush. */
export interface RushReport {
  /** How many routines ran. */
  readonly holds: number;
  /** How often a routine began while another's hold of the key said that it held, unless both read. */
  readonly doubles: number;
  /** How often a routine began with a fence that was not above all before it on its key. Readers share one. */
  readonly fallenFences: number;
  /** How many runs ended with each error code; any other error by its message. */
  readonly errors: Readonly<Record<string, number>>;
}

/** What was the last to begin on a key. */
interface Last {
  readonly fence: number;
  readonly mode: LockMode;
}

/** Many owners in many processes who lock a few keys all the time, until they are told to stop. */
export class Rush {
  readonly #keys: readonly string[];
  readonly #inside = new Map<string, Map<Hold, LockMode>>();
  readonly #last = new Map<string, Last>();
  readonly #workers: readonly Promise<void>[];
  readonly #errors: Record<string, number> = {};
  #holds = 0;
  #doubles = 0;
  #fallenFences = 0;
  #isOver = false;

  /** Each process gets `perKey` owners for each key who write, and `readers` who read, and do nothing else. */
  constructor(processes: readonly Locks[], keys: readonly string[], perKey: number, readers = 0) {
    this.#keys = keys;
    for (const key of keys) this.#inside.set(key, new Map());
    this.#workers = processes.flatMap((locks) =>
      keys.flatMap((key) =>
        Array.from({ length: perKey + readers }, (_, i) => this.#work(locks, key, i < perKey ? 'write' : 'read')),
      ),
    );
  }

  /** Waits until so many more routines have run, and one at least on each of these keys. */
  async more(count: number, keys: readonly string[] = this.#keys): Promise<void> {
    const last = new Map(this.#last);
    const before = this.#holds;
    const isDone = (): boolean =>
      this.#holds >= before + count && keys.every((key) => this.#last.get(key) !== last.get(key));
    await until(isDone);
  }

  async end(): Promise<RushReport> {
    this.#isOver = true;
    await Promise.all(this.#workers);
    return { holds: this.#holds, doubles: this.#doubles, fallenFences: this.#fallenFences, errors: this.#errors };
  }

  async #work(locks: Locks, key: string, mode: LockMode): Promise<void> {
    while (!this.#isOver) {
      try {
        await runInTrace(() => getLock(key).run((hold) => this.#routine(key, hold, mode), { mode }), { locks });
      } catch (error) {
        const name = isLockError(error) ? error.code : String(error);
        this.#errors[name] = (this.#errors[name] ?? 0) + 1;
        // Refused at once: without a pause it would be a busy loop.
        await sleep(20);
      }
    }
  }

  async #routine(key: string, hold: Hold, mode: LockMode): Promise<void> {
    const inside = this.#inside.get(key)!;
    const last = this.#last.get(key) ?? { fence: 0, mode };
    const isRead = mode === 'read';
    this.#holds += 1;
    if ([...inside].some(([other, its]) => other.isHeld() && !(isRead && its === 'read'))) this.#doubles += 1;
    const isShared = hold.fence === last.fence && isRead && last.mode === 'read';
    if (hold.fence <= last.fence && !isShared) this.#fallenFences += 1;
    if (hold.fence >= last.fence) this.#last.set(key, { fence: hold.fence, mode });
    inside.set(hold, mode);
    await sleep(2);
    inside.delete(hold);
  }
}
