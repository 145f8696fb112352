import { readName } from '../core/model/key.ts';
import { permitsOf } from '../core/model/lock-info.ts';
import { branchOf, traceIdOf } from '../core/model/owner.ts';
import { detachedProcess, instanceOf } from '../core/model/process-name.ts';
import type { InspectReply } from '../core/model/store.ts';
import type { HoldMode, PermitsInfo } from '../core/model/types.ts';

/** One lock in the board's table. Times are milliseconds on the store's clock: a row changes only when the lock does. */
export interface LockRow {
  /** The lock's name in the store, and in the requests of the page. */
  readonly id: string;
  readonly key: string;
  readonly category?: string;
  /** Absent if nobody holds it. */
  readonly holder?: Holder;
  /** Absent without permits. */
  readonly permits?: PermitsInfo;
  /** How many holds there are; more than one if readers share the key, or if it has permits. */
  readonly holds: number;
  /** How many wait; a store reports the first 1,000. */
  readonly waiters: number;
  /** The first few of them, in the order of their turns. */
  readonly next: readonly Waiter[];
  /** Since when the longest waiter waits; absent if nobody does. */
  readonly waitingSinceMs?: number;
}

/** The first holder of the lock. */
export interface Holder {
  /** Absent if the hold is detached. */
  readonly traceId?: string;
  /** The path of its branch below the trace; empty for the root. */
  readonly branch: string;
  /** The process that asked for it, if it is known; `detached` if it belongs to none. */
  readonly instance?: string;
  readonly mode: HoldMode;
  readonly fence: number;
  readonly sinceMs: number;
  /** When the last lease ends. */
  readonly endMs: number;
}

/** A waiter. */
export interface Waiter {
  readonly traceId: string;
  readonly branch: string;
  readonly instance?: string;
}

const maxNext = 10;

/** The row of a lock; undefined if it is free. */
export function lockRow(id: string, reply: InspectReply): LockRow | undefined {
  const { holds, waiters } = reply;
  if (holds.length + waiters.length === 0) return undefined;
  const { key, category } = readName(id);
  const [first] = holds;
  const permits = permitsOf(reply);
  const sinceMs = waiters.map((waiter) => Math.round(waiter.sinceMs));
  return {
    id,
    key,
    ...(category !== undefined && { category }),
    ...(permits !== undefined && { permits }),
    ...(first !== undefined && {
      holder: {
        ...traceIn(first.owner),
        branch: branchOf(first.owner),
        ...instanceIn(first.process),
        mode: first.mode,
        fence: first.fence,
        sinceMs: Math.floor(first.fence / 1000),
        endMs: Math.round(Math.max(...holds.map((hold) => hold.endMs))),
      },
    }),
    holds: holds.length,
    waiters: waiters.length,
    next: waiters.slice(0, maxNext).map(({ owner, process }) => ({
      traceId: traceIdOf(owner),
      branch: branchOf(owner),
      ...instanceIn(process),
    })),
    ...(sinceMs.length > 0 && { waitingSinceMs: Math.min(...sinceMs) }),
  };
}

function traceIn(owner: string): { readonly traceId?: string } {
  const traceId = traceIdOf(owner);
  return traceId === '' ? {} : { traceId };
}

function instanceIn(process: string): { readonly instance?: string } {
  const instance = process === detachedProcess ? 'detached' : instanceOf(process);
  return instance === undefined ? {} : { instance };
}
