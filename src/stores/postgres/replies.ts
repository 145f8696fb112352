import type {
  AcquireReply,
  InspectReply,
  ListReply,
  ReleaseReply,
  RenewReply,
  StoreMessage,
  TransferReply,
  WaiterGrant,
  WaitReply,
} from '../../core/model/store.ts';
import type { HoldMode } from '../../core/model/types.ts';

/** The reply of an SQL function: an array. sql/operations.ts and sql/reading.ts explain its parts. */
export type Reply = readonly unknown[];

type Claim = readonly [holdId: string, fence: number, endMs: number, otherHolds: number, equalHolds: number];

/** Reads the reply of `acquire`. */
export function readAcquire(holdId: string, reply: Reply): AcquireReply {
  const [status, nowMs, rows, , ...rest] = reply as [AcquireReply['status'], number, Claim[], unknown, ...unknown[]];
  const claims = readClaims(rows);
  if (status === 'cancelled') return { status, nowMs, claims };
  if (status === 'granted') {
    const [fence, endMs, isClaim, otherHolds, equalHolds] = rest as [number, number, boolean, number, number];
    return { status, grant: { holdId, fence, endMs, isClaim, otherHolds, equalHolds }, nowMs, claims };
  }
  const [freeAtMs, position, isNew, isNewestLost] = rest as [number, number, boolean, boolean];
  const leaseRemainingMs = freeAtMs - nowMs;
  if (status === 'queued')
    return { status, isNew, leaseRemainingMs, position, isNewestLost: isNewestLost || undefined, nowMs, claims };
  return { status, leaseRemainingMs, position, nowMs, claims };
}

/** Reads the name of the server from the reply of `acquire`. Undefined if it did not queue a waiter. */
export function readServer(reply: Reply): string | undefined {
  return reply[0] === 'queued' ? (reply[8] as string | undefined) : undefined;
}

/** Reads the reply of `renew`. */
export function readRenew(reply: Reply): RenewReply {
  const [status, nowMs, endMs] = reply as [RenewReply['status'], number, number];
  return status === 'renewed' ? { status, endMs, nowMs } : { status };
}

/** Reads the reply of `transfer`. */
export function readTransfer(holdId: string, reply: Reply): TransferReply {
  const [status, nowMs, , , fence, endMs] = reply as [
    TransferReply['status'],
    number,
    unknown,
    unknown,
    number,
    number,
  ];
  return status === 'granted' ? { status, grant: { holdId, fence, endMs, isClaim: false }, nowMs } : { status };
}

/** Reads the reply of `release`. */
export function readRelease(reply: Reply): ReleaseReply {
  const [status, nowMs, rows] = reply as [ReleaseReply['status'], number, Claim[]];
  return { status, nowMs, claims: readClaims(rows) };
}

/** Reads the messages of an operation to other processes, for a store that can't receive them from the server. */
export function readMessages(reply: Reply): readonly (readonly [process: string, text: string])[] {
  const messages = (reply[3] ?? []) as string[];
  return Array.from({ length: messages.length / 2 }, (_, i) => [
    messages[2 * i] as string,
    messages[2 * i + 1] as string,
  ]);
}

type HoldRow = readonly [
  holdId: string,
  owner: string,
  process: string,
  fence: number,
  endMs: number,
  isClaim: boolean,
  mode: HoldMode,
];
type WaiterRow = readonly [
  holdId: string,
  owner: string,
  process: string,
  mode: HoldMode,
  priority: number,
  sinceUs: number,
];

/** Reads the reply of `inspect`. */
export function readInspect(reply: Reply): InspectReply {
  const [nowMs, holds, waiters, permits] = reply as [number, HoldRow[], WaiterRow[], number | null];
  return {
    nowMs,
    permits: permits ?? undefined,
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

/** Reads the reply of `list`. */
export function readList(reply: Reply): ListReply {
  const [cursor, rows] = reply as [string | null, (readonly [id: string, reply: Reply])[]];
  const locks = rows.map(([id, each]) => ({ id, ...readInspect(each) }));
  return {
    // The row of a lock remains for a while after its last hold.
    locks: locks.filter(({ holds, waiters }) => holds.length + waiters.length > 0),
    cursor: cursor ?? undefined,
  };
}

/** Reads the reply of `wait`. */
export function readWait(reply: Reply): WaitReply {
  const [sinceUs, holds] = reply as [number | null, (readonly [holdId: string, owner: string, fence: number])[]];
  return {
    sinceMs: sinceUs === null ? undefined : sinceUs / 1000,
    holds: holds.map(([holdId, owner, fence]) => ({ holdId, owner, fence })),
  };
}

/** Reads a notification. Undefined if an SQL function of this store did not send it. */
export function readMessage(text: string): StoreMessage | undefined {
  const [kind, name, ...numbers] = text.split(' ');
  if (name === undefined) return undefined;
  if (kind === 'lost' || kind === 'next') return { kind, holdId: name };
  if (kind === 'freed') return { kind, id: name };
  if (kind !== 'granted') return undefined;
  // A notification of older functions has only the first two.
  const [fence, endMs, otherHolds, equalHolds] = numbers.map(Number) as [number, number, number?, number?];
  return { kind, grant: { holdId: name, fence, endMs, isClaim: true, otherHolds, equalHolds } };
}

function readClaims(rows: readonly Claim[]): readonly WaiterGrant[] {
  return rows.map(([holdId, fence, endMs, otherHolds, equalHolds]) => {
    return { holdId, fence, endMs, isClaim: true, otherHolds, equalHolds };
  });
}
