import { outsideRequests, type Timer } from '../core/base/clock.ts';
import { inBackground } from '../core/base/safely.ts';
import type { LockEvents } from '../core/model/events.ts';
import { lockName, readName } from '../core/model/key.ts';
import type { InspectReply } from '../core/model/store.ts';
import type { Runtime } from '../core/runtime/runtime.ts';
import { lockRow } from './lock-row.ts';
import { Loop } from './loop.ts';

/** The progress of the scanner. */
export interface ScanStatus {
  /** How many names of the store this pass has visited. */
  readonly scanned: number;
  /** How many there are, if the store can count them. */
  readonly total: number | undefined;
  /** Whether a pass has ended; until then, locks may be missing. */
  readonly isComplete: boolean;
  /** Whether there are more locks than the scanner keeps. */
  readonly isFull: boolean;
  /** Whether the store can list its locks. Otherwise only the locks that this process uses are known. */
  readonly canList: boolean;
  /** Since when the store fails, in milliseconds of the monotonic clock; undefined while it works. */
  readonly failedSinceMs: number | undefined;
}

const pageSize = 500;
/** The pause between two pages of a pass: a pass must not keep the store busy. */
const pageMs = 100;
/** The pause between two passes. */
const passMs = 3_000;
const lookMs = 1_000;
/** Looks take at most this part of the time, however many locks there are. */
const lookShare = 1 / 4;
const looksAtOnce = 100;
const newsMs = 100;
const maxNews = 1_000;
const retryMs = 1_000;

const news = ['granted', 'entered', 'waiting', 'released', 'lost', 'forced', 'timeout', 'aborted', 'deadlock'] as const;

/**
 * Finds the locks that are held or waited for, and keeps looking at them until it is stopped: by a slow pass over all names of
 * the store, a look each second at known locks, and an immediate look at the locks that this process's events name.
 */
export class LockScanner {
  /** The JSON of each lock's row, by its name in the store. */
  readonly rows: Map<string, string> = new Map();
  readonly #runtime: Runtime;
  readonly #accepts: (id: string) => boolean;
  readonly #onChange: (id: string) => void;
  readonly #maxRows: number;
  readonly #loops: readonly Loop[];
  readonly #unsubscribe: readonly (() => void)[];
  readonly #news = new Set<string>();
  /** Started by an event, cancelled by `stop`. */
  #newsTimer: Timer | undefined;
  #isStopped = false;
  #cursor: string | undefined;
  #scanned = 0;
  #total: number | undefined;
  #isComplete = false;
  #isFull = false;
  /** Whether this pass has found more than it may keep. */
  #overflows = false;
  #failedSinceMs: number | undefined;
  /** The store's clock less the monotonic one of this process. */
  #offsetMs: number;

  /** `accepts` selects names to look at. `onChange` is called with the name of each lock whose row appeared, changed or vanished. */
  constructor(runtime: Runtime, accepts: (id: string) => boolean, maxRows: number, onChange: (id: string) => void) {
    this.#runtime = runtime;
    this.#accepts = accepts;
    this.#maxRows = maxRows;
    this.#onChange = onChange;
    const now = runtime.clock.now();
    this.#offsetMs = now.wallMs - now.monoMs;
    const { clock, events } = runtime;
    const work = this.canList ? [() => this.#scan(), () => this.#look()] : [() => this.#look()];
    // A scan that one viewer's request has started serves all viewers.
    this.#loops = outsideRequests(() => work.map((each) => new Loop(clock, each)));
    this.#unsubscribe = news.map((event) => events.on(event, (payload) => this.#heard(payload)));
  }

  get canList(): boolean {
    return this.#runtime.client.canList;
  }

  get status(): ScanStatus {
    return {
      scanned: this.#scanned,
      total: this.#total,
      isComplete: this.#isComplete || !this.canList,
      isFull: this.#isFull,
      canList: this.canList,
      failedSinceMs: this.#failedSinceMs,
    };
  }

  /** The store's clock now, as far as it is known. */
  get storeNowMs(): number {
    return Math.round(this.#runtime.clock.now().monoMs + this.#offsetMs);
  }

  stop(): void {
    this.#isStopped = true;
    for (const loop of this.#loops) loop.stop();
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#newsTimer?.cancel();
  }

  /** One page of the pass; returns how long to pause. */
  async #scan(): Promise<number> {
    try {
      const page = await this.#runtime.client.list({ idPrefix: '', limit: pageSize, cursor: this.#cursor });
      // A page without a lock shows, too, that the store works.
      this.#failedSinceMs = undefined;
      if (this.#cursor === undefined) [this.#scanned, this.#overflows] = [0, false];
      this.#scanned += pageSize;
      this.#total = page.total ?? this.#total;
      for (const lock of page.locks) this.#found(lock.id, lock);
      // A look at them would fail.
      for (const id of page.unreadable ?? []) this.#forget(id);
      this.#cursor = page.cursor;
      if (this.#cursor !== undefined) return pageMs;
      this.#scanned = this.#total ?? this.#scanned;
      this.#isComplete = true;
      this.#isFull = this.#overflows;
      return passMs;
    } catch {
      this.#failed();
      return retryMs;
    }
  }

  /** A look at all known locks; returns how long to pause. */
  async #look(): Promise<number> {
    const { clock } = this.#runtime;
    const startMs = clock.now().monoMs;
    const isDone = await this.#lookAt([...this.rows.keys()]);
    const tookMs = clock.now().monoMs - startMs;
    return isDone ? Math.max(lookMs, tookMs / lookShare - tookMs) : retryMs;
  }

  /** Returns false if the store failed: the rest would only fail as well. */
  async #lookAt(ids: readonly string[]): Promise<boolean> {
    const { client } = this.#runtime;
    try {
      for (let from = 0; from < ids.length && !this.#isStopped; ) {
        // Each failure is an event: after one, a single call checks whether the store is back.
        const some = ids.slice(from, from + (this.#failedSinceMs === undefined ? looksAtOnce : 1));
        await Promise.all(some.map(async (id) => this.#found(id, await client.inspect({ id, ...readName(id) }))));
        from += some.length;
      }
      return true;
    } catch {
      this.#failed();
      return false;
    }
  }

  #heard(event: LockEvents[(typeof news)[number]]): void {
    const { key, category } = event as typeof event & { readonly category?: string };
    const { id } = lockName(key, category);
    if (this.#news.size >= maxNews || !this.#accepts(id)) return;
    this.#news.add(id);
    this.#newsTimer ??= outsideRequests(() => this.#runtime.clock.after(newsMs, () => this.#lookAtNews()));
  }

  #lookAtNews(): void {
    this.#newsTimer = undefined;
    const ids = [...this.#news];
    this.#news.clear();
    inBackground(this.#lookAt(ids));
  }

  #found(id: string, reply: InspectReply): void {
    this.#failedSinceMs = undefined;
    this.#offsetMs = reply.nowMs - this.#runtime.clock.now().monoMs;
    if (!this.#accepts(id)) return;
    const row = lockRow(id, reply);
    const before = this.rows.get(id);
    if (row === undefined) {
      this.#forget(id);
      return;
    }
    if (before === undefined && this.rows.size >= this.#maxRows) {
      [this.#isFull, this.#overflows] = [true, true];
      return;
    }
    const json = JSON.stringify(row);
    if (json === before) return;
    this.rows.set(id, json);
    this.#onChange(id);
  }

  #forget(id: string): void {
    if (this.rows.delete(id)) this.#onChange(id);
  }

  #failed(): void {
    this.#failedSinceMs ??= this.#runtime.clock.now().monoMs;
  }
}
