import type {
  AcquireReply,
  InspectReply,
  ListReply,
  ReleaseReply,
  RenewReply,
  StoreGrant,
  StoreMessage,
  WaitReply,
} from '../../model/store.ts';
import type { LockMode } from '../../model/types.ts';

/** What an operation returned; sql/operations.ts says what its parts are. */
export type Reply = readonly unknown[];

type Claim = readonly [holdId: string, fence: number, endMs: number];

/** What `acquire` returned. */
export function readAcquire(holdId: string, reply: Reply): AcquireReply {
  const [status, nowMs, rows, , ...rest] = reply as [AcquireReply['status'], number, Claim[], unknown, ...unknown[]];
  const claims = readClaims(rows);
  if (status === 'cancelled') return { status, nowMs, claims };
  if (status === 'granted') {
    const [fence, endMs, isClaim, otherHolds] = rest as [number, number, boolean, number];
    return { status, grant: { holdId, fence, endMs, isClaim }, otherHolds, nowMs, claims };
  }
  const [freeAtMs, position, isNew] = rest as [number, number, boolean];
  const leaseRemainingMs = freeAtMs - nowMs;
  if (status === 'queued') return { status, isNew, leaseRemainingMs, position, nowMs, claims };
  return { status, leaseRemainingMs, position, nowMs, claims };
}

/** What `renew` returned. */
export function readRenew(reply: Reply): RenewReply {
  const [status, nowMs, endMs] = reply as [RenewReply['status'], number, number];
  return status === 'renewed' ? { status, endMs, nowMs } : { status };
}

/** What `release` returned. */
export function readRelease(reply: Reply): ReleaseReply {
  const [status, nowMs, rows] = reply as [ReleaseReply['status'], number, Claim[]];
  return { status, nowMs, claims: readClaims(rows) };
}

/** What an operation told other processes, for those that can't hear of it. */
export function readTold(reply: Reply): readonly (readonly [process: string, text: string])[] {
  const told = (reply[3] ?? []) as string[];
  return Array.from({ length: told.length / 2 }, (_, i) => [told[2 * i] as string, told[2 * i + 1] as string]);
}

type HoldRow = readonly [
  holdId: string,
  owner: string,
  process: string,
  fence: number,
  endMs: number,
  isClaim: boolean,
  mode: LockMode,
];
type WaiterRow = readonly [
  holdId: string,
  owner: string,
  process: string,
  mode: LockMode,
  priority: number,
  sinceUs: number,
];

/** What `inspect` returned. */
export function readInspect(reply: Reply): InspectReply {
  const [nowMs, holds, waiters] = reply as [number, HoldRow[], WaiterRow[]];
  return {
    nowMs,
    holds: holds.map(([holdId, owner, process, fence, endMs, isClaim, mode]) => ({
      holdId,
      owner,
      process,
      fence,
      endMs,
      isClaim,
      mode,
    })),
    waiters: waiters.map(([holdId, owner, process, mode, priority, sinceUs]) => ({
      holdId,
      owner,
      process,
      mode,
      priority,
      sinceMs: sinceUs / 1000,
    })),
  };
}

/** What `list` returned. */
export function readList(reply: Reply): ListReply {
  const [cursor, rows] = reply as [string | null, (readonly [id: string, reply: Reply])[]];
  const locks = rows.map(([id, each]) => ({ id, ...readInspect(each) }));
  return {
    // A record outlives what it tells of.
    locks: locks.filter(({ holds, waiters }) => holds.length + waiters.length > 0),
    cursor: cursor ?? undefined,
  };
}

/** What `wait` returned. */
export function readWait(reply: Reply): WaitReply {
  const [sinceUs, holds] = reply as [number | null, (readonly [holdId: string, owner: string, fence: number])[]];
  return {
    sinceMs: sinceUs === null ? undefined : sinceUs / 1000,
    holds: holds.map(([holdId, owner, fence]) => ({ holdId, owner, fence })),
  };
}

/** What a function notified a process of; undefined where somebody else did. */
export function readMessage(text: string): StoreMessage | undefined {
  const [kind, name, fence, end] = text.split(' ');
  if (name === undefined) return undefined;
  if (kind === 'lost') return { kind, holdId: name };
  if (kind === 'freed') return { kind, id: name };
  if (kind !== 'granted') return undefined;
  return { kind, grant: { holdId: name, fence: Number(fence), endMs: Number(end), isClaim: true } };
}

function readClaims(rows: readonly Claim[]): readonly StoreGrant[] {
  return rows.map(([holdId, fence, endMs]) => ({ holdId, fence, endMs, isClaim: true }));
}
