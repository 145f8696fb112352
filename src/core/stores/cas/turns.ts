import { asMicrotask, type Clock, pause, type Timer } from '../../base/clock.ts';
import { LockStoreError } from '../../model/errors.ts';
import type { CasAdapter } from './adapter.ts';
import { CasRecord } from './record.ts';

/** One operation that waits for its turn. */
interface Step {
  readonly operation: string;
  /** Whether it may change the record. */
  readonly mayWrite: boolean;
  /** Also called again, on a newer record, where another process was faster. */
  compute(record: CasRecord): void;
  succeed(): void;
  fail(error: LockStoreError): void;
}

interface Turn {
  /** How often somebody else was faster. */
  conflicts: number;
  /** Whether a write is on its way. */
  isWriting: boolean;
  isOver: boolean;
}

const longestPauseMs = 64;

/**
 * Brings operations to the records that they are about: read, compute, write if unchanged, and again where it was changed.
 * The operations of this process on one key go in order: all that came during a turn share the next one, so that a
 * process is never its own rival and many operations cost one write.
 */
export class CasTurns {
  readonly #adapter: CasAdapter;
  readonly #clock: Clock;
  readonly #prefix: string;
  readonly #deadlineMs: number;
  readonly #onMessages: (messages: CasRecord['messages']) => void;
  /** By lock: the operations of the next turn. A lock is here while it has one. */
  readonly #lines = new Map<string, Step[]>();

  constructor(
    adapter: CasAdapter,
    clock: Clock,
    prefix: string,
    deadlineMs: number,
    onMessages: (messages: CasRecord['messages']) => void,
  ) {
    this.#adapter = adapter;
    this.#clock = clock;
    this.#prefix = prefix;
    this.#deadlineMs = deadlineMs;
    this.#onMessages = onMessages;
  }

  /** Answers what `compute` answered on the record that was then written. Rejects with a `LockStoreError`. */
  run<T>(id: string, operation: string, compute: (record: CasRecord) => T): Promise<T> {
    return this.#queue(id, operation, true, compute);
  }

  /** As `run`, for what changes nothing: it writes nothing either. */
  look<T>(id: string, operation: string, compute: (record: CasRecord) => T): Promise<T> {
    return this.#queue(id, operation, false, compute);
  }

  #queue<T>(id: string, operation: string, mayWrite: boolean, compute: (record: CasRecord) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      let reply: T;
      const step: Step = {
        operation,
        mayWrite,
        compute: (record) => {
          reply = compute(record);
        },
        succeed: () => resolve(reply),
        fail: reject,
      };
      const line = this.#lines.get(id);
      if (line !== undefined) {
        line.push(step);
        return;
      }
      this.#lines.set(id, [step]);
      // What else is asked for in this turn of the event loop comes along.
      asMicrotask(() => void this.#serve(id));
    });
  }

  async #serve(id: string): Promise<void> {
    while (true) {
      const steps = this.#lines.get(id) ?? [];
      if (steps.length === 0) break;
      this.#lines.set(id, []);
      await this.#take(id, steps);
    }
    this.#lines.delete(id);
  }

  /** Never rejects. The adapter is not trusted to settle: the timer ends the turn, and is cleared with it. */
  async #take(id: string, steps: readonly Step[]): Promise<void> {
    const turn: Turn = { conflicts: 0, isWriting: false, isOver: false };
    let timer: Timer | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = this.#clock.after(this.#deadlineMs, () => reject(new Error(whyLate(turn, this.#deadlineMs))));
    });
    try {
      const record = await Promise.race([this.#write(id, steps, turn), tooLate]);
      for (const step of steps) step.succeed();
      if (record.messages.length > 0) asMicrotask(() => this.#onMessages(record.messages));
    } catch (cause) {
      for (const step of steps) step.fail(failure(step.operation, cause, turn.isWriting));
    }
    turn.isOver = true;
    timer?.cancel();
  }

  /** Answers the record that is in force. */
  async #write(id: string, steps: readonly Step[], turn: Turn): Promise<CasRecord> {
    const key = this.#prefix + id;
    while (true) {
      const reading = await this.#adapter.read(key);
      const record = new CasRecord(id, reading);
      // Nobody waits for the answer any more: a write now would come as a surprise.
      if (turn.isOver) return record;
      for (const step of steps) step.compute(record);
      if (!steps.some(({ mayWrite }) => mayWrite)) return record;
      turn.isWriting = true;
      if ((await this.#put(key, reading.value, record)) || turn.isOver) return record;
      turn.isWriting = false;
      turn.conflicts += 1;
      await pause(this.#clock, Math.min(2 ** turn.conflicts, longestPauseMs) * this.#clock.jitter());
    }
  }

  async #put(key: string, old: string | undefined, record: CasRecord): Promise<boolean> {
    if (record.isEmpty) return old === undefined || this.#adapter.remove(key, old);
    if (!record.isChanged) return true;
    const { text, ttlMs } = record.next;
    return old === undefined ? this.#adapter.create(key, text, ttlMs) : this.#adapter.replace(key, old, text, ttlMs);
  }
}

function whyLate({ conflicts }: Turn, deadlineMs: number): string {
  return conflicts > 0
    ? `Others changed the record at each of ${conflicts} tries in ${deadlineMs} ms`
    : `The server did not answer within ${deadlineMs} ms`;
}

/** What fails before anything was written is certain. */
function failure(operation: string, cause: unknown, isWriting: boolean): LockStoreError {
  const isRefused = cause instanceof LockStoreError && cause.outcome === 'not-applied';
  const outcome = isWriting && !isRefused ? 'unknown' : 'not-applied';
  const reason = cause instanceof LockStoreError ? (cause.cause ?? cause) : cause;
  return new LockStoreError(`The lock store failed at ${operation}`, { cause: reason, outcome });
}
