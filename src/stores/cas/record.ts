import { type LockImage, MemoryLock } from '../../core/machine/lock-state.ts';
import type { LockHost } from '../../core/machine/operations.ts';
import { otherFormatMessage } from '../../core/model/errors/failures.ts';
import type { HoldRequest, ReleaseReply, StoreMessage } from '../../core/model/store.ts';
import type { CasReading } from './adapter.ts';

type Tombstone = readonly [holdId: string, status: ReleaseReply['status'], untilMs: number];

/** A request in a record. The `id` is in the record's key. */
type Stored<T extends { readonly request: HoldRequest }> = Omit<T, 'request'> & { request: Omit<HoldRequest, 'id'> };

/** The text under one key, parsed. This is format 1, whose number is not written. A later format must write its own. */
interface Content {
  readonly format?: unknown;
  /** Counts the writes: no two texts of one record are the same. */
  readonly version: number;
  /** When the whole record has expired, on the server's clock. */
  readonly untilMs: number;
  readonly lastFence: number;
  readonly holds: readonly Stored<LockImage['holds'][number]>[];
  readonly queue: readonly Stored<LockImage['queue'][number]>[];
  readonly processes: LockImage['processes'];
  readonly gone: readonly Tombstone[];
}

/** How many releases a record remembers, the newest ones. The record is read and written as a whole. */
const maxTombstones = 128;

/** One lock as it was read. Operations change this object; `next` is the text to write. */
export class CasRecord {
  readonly lock: MemoryLock;
  readonly nowMs: number;
  /** The messages to send once the record is written. */
  readonly messages: { readonly process: string; readonly message: StoreMessage }[] = [];
  readonly #nowUs: number;
  readonly #version: number;
  readonly #gone: Map<string, Tombstone>;
  /** The text from the server, without its head. */
  readonly #before: string | undefined;
  #lastFence: number;

  /** Throws if the text is not the record of a lock, or if the time is no number: then every lease would seem to have expired. */
  constructor(id: string, { value, nowUs }: CasReading) {
    this.#nowUs = nowUs;
    this.nowMs = Math.floor(nowUs / 1000);
    if (!Number.isFinite(this.nowMs)) throw new Error('Expected the time of the server, got no number');
    const content = value === undefined ? undefined : parse(value);
    const hasExpired = content === undefined || content.untilMs <= this.nowMs;
    const { lastFence, holds, queue, processes, gone } = hasExpired ? nothing : content;
    const named = ({ request }: { readonly request: object }) => ({ ...request, id }) as HoldRequest;
    this.lock = MemoryLock.of({
      fence: lastFence,
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

  /** Whether it must be written: an operation has changed it, or a part of it has expired. */
  get isChanged(): boolean {
    return this.#before !== this.#body();
  }

  /** Whether it contains nothing that must be remembered. */
  get isEmpty(): boolean {
    return this.lock.isUnused && this.#lastFence === 0 && this.#gone.size === 0;
  }

  /** The text to write, and how long the server must keep it: until `recordTtlMs` after the whole record has expired. */
  next(recordTtlMs: number): { readonly text: string; readonly ttlMs: number } {
    const { holds, processes } = this.lock.image;
    let lastMs = Math.max(this.nowMs, Math.ceil(this.#lastFence / 1000));
    for (const { endMs } of holds) lastMs = Math.max(lastMs, endMs);
    for (const [, { liveUntilMs }] of processes) lastMs = Math.max(lastMs, liveUntilMs);
    for (const [, , untilMs] of this.#gone.values()) lastMs = Math.max(lastMs, untilMs);
    const untilMs = lastMs + recordTtlMs;
    const text = `{"version":${this.#version + 1},"untilMs":${untilMs},${this.#body()}`;
    return { text, ttlMs: untilMs - this.nowMs };
  }

  /** The context of an operation. The server does not know which processes listen: each counts as reachable. */
  host(caller: string | undefined): LockHost {
    return {
      nowMs: this.nowMs,
      caller,
      nextFence: () => {
        this.#lastFence = Math.max(this.#lastFence + 1, this.#nowUs);
        return this.#lastFence;
      },
      isReachable: () => true,
      send: (process, message) => void this.messages.push({ process, message }),
      buried: (holdId) => this.#gone.get(holdId)?.[1],
      bury: ({ holdId }, status, tombstoneMs) => {
        this.#gone.set(holdId, [holdId, status, this.nowMs + tombstoneMs]);
        if (this.#gone.size > maxTombstones) this.#gone.delete(this.#gone.keys().next().value as string);
      },
    };
  }

  /** The present text, without its head. */
  #body(): string {
    const { holds, queue, processes } = this.lock.image;
    const gone = [...this.#gone.values()];
    const content = { lastFence: this.#lastFence, holds: holds.map(withoutId), queue: queue.map(withoutId) };
    return JSON.stringify({ ...content, processes, gone }).slice(1);
  }
}

/** The part that changes with every write. */
const head = /^\{"version":\d+,"untilMs":\d+,/;

const nothing: Omit<Content, 'version' | 'untilMs'> = { lastFence: 0, holds: [], queue: [], processes: [], gone: [] };

/** Another version of the package wrote the record. */
export class OtherFormatError extends Error {
  override readonly name = 'OtherFormatError';

  constructor() {
    super(otherFormatMessage);
  }
}

function parse(text: string): Content {
  const content = JSON.parse(text) as Partial<Content> | null;
  if (content?.format !== undefined && content.format !== 1) throw new OtherFormatError();
  const lists = [content?.holds, content?.queue, content?.processes, content?.gone];
  const numbers = [content?.version, content?.untilMs, content?.lastFence];
  if (!numbers.every(Number.isFinite) || !lists.every(Array.isArray))
    throw new Error('Expected the record of a lock, got something else under its key');
  return content as Content;
}

function withoutId<T extends { readonly request: HoldRequest }>(part: T): Stored<T> {
  const { id: _, ...request } = part.request;
  return { ...part, request };
}
