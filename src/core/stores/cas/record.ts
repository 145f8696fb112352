import type { HoldRequest, ReleaseReply, StoreMessage } from '../../model/store.ts';
import { type LockImage, MemoryLock } from '../machine/lock-state.ts';
import type { LockHost } from '../machine/operations.ts';
import type { CasReading } from './adapter.ts';

type Tombstone = readonly [holdId: string, status: ReleaseReply['status'], untilMs: number];

/** A request under its lock's own key needs no `id`. */
type Kept<T extends { readonly request: HoldRequest }> = Omit<T, 'request'> & { request: Omit<HoldRequest, 'id'> };

/** The text under one key, parsed. */
interface Content {
  /** How often it was written: no two texts of one record are the same. */
  readonly version: number;
  /** When nothing of it counts any more, on the server's clock. */
  readonly untilMs: number;
  readonly lastFence: number;
  readonly holds: readonly Kept<LockImage['holds'][number]>[];
  readonly queue: readonly Kept<LockImage['queue'][number]>[];
  readonly processes: LockImage['processes'];
  readonly gone: readonly Tombstone[];
}

/** A record outlives all that is in it by an hour: the next fence is beyond the last one, also where the clock was set back. */
const keptMs = 3_600_000;

/** The newest releases that a record remembers: it is read and written whole. */
const mostTombstones = 128;

/** One lock as it was read: operations change it here, and `next` is what to write in the place of what was read. */
export class CasRecord {
  readonly lock: MemoryLock;
  readonly nowMs: number;
  /** What is to be told once it was written. */
  readonly messages: { readonly process: string; readonly message: StoreMessage }[] = [];
  readonly #nowUs: number;
  readonly #version: number;
  readonly #gone: Map<string, Tombstone>;
  /** All but the head, as it was read. */
  readonly #before: string | undefined;
  #lastFence: number;

  /** Throws where the text is not a lock's, or the time is none: by that, every lease would be over. */
  constructor(id: string, { value, nowUs }: CasReading) {
    this.#nowUs = nowUs;
    this.nowMs = Math.floor(nowUs / 1000);
    if (!Number.isFinite(this.nowMs)) throw new Error('Not a time of the server');
    const content = value === undefined ? undefined : parse(value);
    const isOver = content === undefined || content.untilMs <= this.nowMs;
    const { lastFence, holds, queue, processes, gone } = isOver ? nothing : content;
    const named = ({ request }: { readonly request: object }) => ({ ...request, id }) as HoldRequest;
    this.lock = MemoryLock.of({
      holds: holds.map((hold) => ({ ...hold, request: named(hold) })),
      queue: queue.map((waiter) => ({ ...waiter, request: named(waiter) })),
      processes,
    });
    this.#version = content?.version ?? 0;
    this.#lastFence = lastFence;
    const isKept = ([, , untilMs]: Tombstone): boolean => untilMs > this.nowMs;
    this.#gone = new Map(gone.filter(isKept).map((tombstone) => [tombstone[0], tombstone]));
    this.#before = value?.replace(head, '');
  }

  /** Whether it must be written: an operation changed something, or something is over and can be forgotten. */
  get isChanged(): boolean {
    return this.#before !== this.#body();
  }

  /** Whether nothing is in it that must be remembered. */
  get isEmpty(): boolean {
    return this.lock.isUnused && this.#lastFence === 0 && this.#gone.size === 0;
  }

  /** What to write, and how long it must be kept. */
  get next(): { readonly text: string; readonly ttlMs: number } {
    const { holds, processes } = this.lock.image;
    let lastMs = Math.max(this.nowMs, Math.ceil(this.#lastFence / 1000));
    for (const { endMs } of holds) lastMs = Math.max(lastMs, endMs);
    for (const [, { liveUntilMs }] of processes) lastMs = Math.max(lastMs, liveUntilMs);
    for (const [, , untilMs] of this.#gone.values()) lastMs = Math.max(lastMs, untilMs);
    const untilMs = lastMs + keptMs;
    const text = `{"version":${this.#version + 1},"untilMs":${untilMs},${this.#body()}`;
    return { text, ttlMs: untilMs - this.nowMs };
  }

  /** What an operation of one process needs. No server of this kind can tell who listens: nobody is unreachable. */
  host(caller: string | undefined): LockHost {
    return {
      nowMs: this.nowMs,
      caller,
      nextFence: () => {
        this.#lastFence = Math.max(this.#lastFence + 1, this.#nowUs);
        return this.#lastFence;
      },
      isReachable: () => true,
      tell: (process, message) => void this.messages.push({ process, message }),
      buried: (holdId) => this.#gone.get(holdId)?.[1],
      bury: ({ holdId }, status, tombstoneMs) => {
        this.#gone.set(holdId, [holdId, status, this.nowMs + tombstoneMs]);
        if (this.#gone.size > mostTombstones) this.#gone.delete(this.#gone.keys().next().value as string);
      },
    };
  }

  /** All but the head, as it is now. */
  #body(): string {
    const { holds, queue, processes } = this.lock.image;
    const gone = [...this.#gone.values()];
    const content = { lastFence: this.#lastFence, holds: holds.map(withoutId), queue: queue.map(withoutId) };
    return JSON.stringify({ ...content, processes, gone }).slice(1);
  }
}

/** What changes with every write. */
const head = /^\{"version":\d+,"untilMs":\d+,/;

const nothing: Omit<Content, 'version' | 'untilMs'> = { lastFence: 0, holds: [], queue: [], processes: [], gone: [] };

function parse(text: string): Content {
  const content = JSON.parse(text) as Partial<Content> | null;
  const lists = [content?.holds, content?.queue, content?.processes, content?.gone];
  const numbers = [content?.version, content?.untilMs, content?.lastFence];
  if (!numbers.every(Number.isFinite) || !lists.every(Array.isArray)) throw new Error('Not the record of a lock');
  return content as Content;
}

function withoutId<T extends { readonly request: HoldRequest }>(part: T): Kept<T> {
  const { id: _, ...request } = part.request;
  return { ...part, request };
}
