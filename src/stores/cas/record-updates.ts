import { asMicrotask, type Clock, pause, type Timer } from '../../core/base/clock.ts';
import { LockStoreError } from '../../core/model/errors/failures.ts';
import type { CasAdapter } from './adapter.ts';
import { CasRecord, OtherFormatError } from './record.ts';

/** An operation that waits for its batch. */
interface Operation {
  readonly name: string;
  /** Whether it may change the record. */
  readonly mayWrite: boolean;
  /** Called again, with a newer record, if another process has changed the record in between. */
  compute(record: CasRecord): void;
  succeed(): void;
  fail(error: LockStoreError): void;
}

/** The settings of `RecordUpdates`, as in the options of a `CasStore`. */
interface UpdateSettings {
  readonly prefix: string;
  readonly deadlineMs: number;
  readonly recordTtlMs: number;
}

/** The progress of a batch. */
interface Progress {
  /** How often another process changed the record first. */
  conflicts: number;
  /** Whether a write was sent and has no reply. */
  isWriting: boolean;
  hasEnded: boolean;
}

const maxPauseMs = 64;

/**
 * Applies operations to records: reads a record, computes the new one, writes it if nobody has changed it, and otherwise
 * begins again. Operations of this process on one key run in order and in batches: a batch takes all operations that arrived
 * during the one before. Operations of one process therefore do not conflict, and many of them need one write.
 */
export class RecordUpdates {
  readonly #adapter: CasAdapter;
  readonly #clock: Clock;
  readonly #settings: UpdateSettings;
  readonly #onMessages: (messages: CasRecord['messages']) => void;
  /** The operations of the next batch, by lock. Has an entry while a batch of the lock runs. */
  readonly #pending = new Map<string, Operation[]>();

  constructor(
    adapter: CasAdapter,
    clock: Clock,
    settings: UpdateSettings,
    onMessages: (messages: CasRecord['messages']) => void,
  ) {
    this.#adapter = adapter;
    this.#clock = clock;
    this.#settings = settings;
    this.#onMessages = onMessages;
  }

  /** Resolves with the result of `compute` on the written record. Rejects with a `LockStoreError`. */
  update<T>(id: string, name: string, compute: (record: CasRecord) => T): Promise<T> {
    return this.#add(id, name, true, compute);
  }

  /** As `update`, for an operation that changes nothing: nothing is written. */
  read<T>(id: string, name: string, compute: (record: CasRecord) => T): Promise<T> {
    return this.#add(id, name, false, compute);
  }

  #add<T>(id: string, name: string, mayWrite: boolean, compute: (record: CasRecord) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      let reply: T;
      const operation: Operation = {
        name,
        mayWrite,
        compute: (record) => {
          reply = compute(record);
        },
        succeed: () => resolve(reply),
        fail: reject,
      };
      const pending = this.#pending.get(id);
      if (pending !== undefined) {
        pending.push(operation);
        return;
      }
      this.#pending.set(id, [operation]);
      // Operations that arrive synchronously after this one join its batch.
      asMicrotask(() => this.#work(id));
    });
  }

  async #work(id: string): Promise<void> {
    for (let batch = this.#pending.get(id) ?? []; batch.length > 0; batch = this.#pending.get(id) ?? []) {
      this.#pending.set(id, []);
      await this.#apply(id, batch);
    }
    this.#pending.delete(id);
  }

  /** Never rejects. An adapter may never settle: the timer ends the batch, and is cleared at its end. */
  async #apply(id: string, batch: readonly Operation[]): Promise<void> {
    const progress: Progress = { conflicts: 0, isWriting: false, hasEnded: false };
    let timer: Timer | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = this.#clock.after(this.#settings.deadlineMs, () =>
        reject(new Error(whyLate(progress, this.#settings.deadlineMs))),
      );
    });
    try {
      const record = await Promise.race([this.#write(id, batch, progress), tooLate]);
      for (const operation of batch) operation.succeed();
      if (record.messages.length > 0) asMicrotask(() => this.#onMessages(record.messages));
    } catch (cause) {
      for (const operation of batch) operation.fail(failure(operation.name, cause, progress.isWriting));
    }
    progress.hasEnded = true;
    timer?.cancel();
  }

  /** Resolves with the record as it is on the server now. */
  async #write(id: string, batch: readonly Operation[], progress: Progress): Promise<CasRecord> {
    const key = this.#settings.prefix + id;
    while (true) {
      const reading = await this.#adapter.read(key);
      const record = new CasRecord(id, reading);
      // The callers have failed with "not applied": the operations must not be applied now.
      if (progress.hasEnded) return record;
      for (const operation of batch) operation.compute(record);
      if (!batch.some(({ mayWrite }) => mayWrite)) return record;
      progress.isWriting = true;
      if ((await this.#put(key, reading.value, record)) || progress.hasEnded) return record;
      progress.isWriting = false;
      progress.conflicts += 1;
      await pause(this.#clock, Math.min(2 ** progress.conflicts, maxPauseMs) * this.#clock.jitter());
    }
  }

  /** Returns false if the record on the server is not the one that was read. */
  async #put(key: string, old: string | undefined, record: CasRecord): Promise<boolean> {
    if (record.isEmpty) return old === undefined || this.#adapter.remove(key, old);
    if (!record.isChanged) return true;
    const { text, ttlMs } = record.next(this.#settings.recordTtlMs);
    return old === undefined ? this.#adapter.create(key, text, ttlMs) : this.#adapter.replace(key, old, text, ttlMs);
  }
}

function whyLate({ conflicts }: Progress, deadlineMs: number): string {
  return conflicts > 0
    ? `Expected one of ${conflicts} attempts in ${deadlineMs} ms to succeed, but other processes changed the record each time`
    : `Expected a reply of the server within ${deadlineMs} ms, got none`;
}

/** A failure before a write was sent has changed nothing, and neither has a failure to read the record. */
function failure(name: string, cause: unknown, isWriting: boolean): LockStoreError {
  if (cause instanceof OtherFormatError) return new LockStoreError(cause.message, { cause, outcome: 'not-applied' });
  const isRefused = cause instanceof LockStoreError && cause.outcome === 'not-applied';
  const outcome = isWriting && !isRefused ? 'unknown' : 'not-applied';
  // The adapter knows what to do.
  if (cause instanceof LockStoreError)
    return new LockStoreError(cause.message, { cause: cause.cause ?? cause, outcome });
  return new LockStoreError(`The lock store failed at ${name}`, { cause, outcome });
}
