import type {
  AcquireReply,
  InspectReply,
  ReleaseReply,
  RenewReply,
  StoreMessage,
  TransferReply,
  WaiterGrant,
} from '../../core/model/store.ts';
import type { HoldMode } from '../../core/model/types.ts';
import type { Item } from './scripts.ts';

/** The short reply of acquire.lua: granted for the whole lease. It is the fence, which is then the server's time in µs. */
export function readGrant(holdId: string, fence: number, leaseMs: number): AcquireReply {
  const nowMs = Math.floor(fence / 1000);
  const grant = { holdId, fence, endMs: nowMs + leaseMs, isClaim: false, otherHolds: 0, equalHolds: 0 };
  return { status: 'granted', grant, nowMs, claims: none };
}

/** The long reply of acquire.lua, which lists its parts. */
export function readAcquire(holdId: string, reply: Item[]): AcquireReply {
  const [status, now, third, fourth, fifth, sixth] = reply as [AcquireReply['status'], ...Item[]];
  const nowMs = Number(now);
  if (status === 'granted') {
    const [otherHolds, equalHolds, isClaim] = [Number(sixth), Number(reply[6]), Number(fifth) === 1];
    const grant = { holdId, fence: Number(third), endMs: Number(fourth), isClaim, otherHolds, equalHolds };
    return { status, grant, nowMs, claims: readClaims(reply, 7) };
  }
  if (status === 'cancelled') return { status, nowMs, claims: none };
  const leaseRemainingMs = Math.max(0, Number(third) - nowMs);
  const position = Number(fourth);
  const claims = readClaims(reply, 6);
  if (status !== 'queued') return { status, leaseRemainingMs, position, nowMs, claims };
  const [isNew, isNewestLost] = [Number(fifth) === 1, Number(sixth) === 1 || undefined];
  return { status, isNew, leaseRemainingMs, position, isNewestLost, nowMs, claims };
}

/** The reply of renew.lua. */
export function readRenew(reply: unknown): RenewReply {
  const [status, now, end] = reply as [RenewReply['status'], Item, Item];
  return status === 'renewed' ? { status, endMs: Number(end), nowMs: Number(now) } : { status };
}

/** The reply of transfer.lua. */
export function readTransfer(holdId: string, reply: unknown): TransferReply {
  const [status, now, fence, end] = reply as [TransferReply['status'], Item, Item, Item];
  if (status !== 'granted') return { status };
  return { status, grant: { holdId, fence: Number(fence), endMs: Number(end), isClaim: false }, nowMs: Number(now) };
}

/** The reply of release.lua; the short one is the time alone: it held, and the process has no other claim open. */
export function readRelease(reply: unknown): ReleaseReply {
  if (!Array.isArray(reply)) return { status: 'released', nowMs: Number(reply), claims: none };
  const items: Item[] = reply;
  const [status, now] = items as [ReleaseReply['status'], Item];
  return { status, nowMs: Number(now), claims: readClaims(items, 2) };
}

/** The reply of inspect.lua. */
export function readInspect(reply: unknown): InspectReply {
  const [now, holds, waiters] = reply as [Item, Item[], Item[]];
  const modes: Mode[] = [];
  const read = (text: unknown): HoldMode => {
    const mode = readMode(String(text));
    modes.push(mode);
    return mode.mode;
  };
  const holdsRead = rows(holds, 7).map(([holdId, owner, mode, process, fence, end, isClaim]) => ({
    holdId: String(holdId),
    owner: String(owner),
    process: String(process),
    fence: Number(fence),
    endMs: Number(end),
    isClaim: Number(isClaim) === 1,
    mode: read(mode),
  }));
  const waitersRead = rows(waiters, 6).map(([holdId, owner, mode, process, priority, since]) => ({
    holdId: String(holdId),
    owner: String(owner),
    process: String(process),
    mode: read(mode),
    priority: Number(priority),
    sinceMs: Number(since) / 1000,
  }));
  const permits = modes.find((mode) => mode.permits !== undefined)?.permits;
  return { nowMs: Number(now), permits, holds: holdsRead, waiters: waitersRead };
}

/** Parses a message of a script. Undefined for any other text. */
export function readMessage(text: string): StoreMessage | undefined {
  const [kind, holdId, ...numbers] = text.split(' ');
  if (holdId === undefined) return undefined;
  if (kind === 'lost' || kind === 'next') return { kind, holdId };
  if (kind === 'freed') return { kind, id: holdId };
  if (kind !== 'granted') return undefined;
  return { kind, grant: readClaim(holdId, numbers) };
}

function readClaims(reply: readonly Item[], from: number): readonly WaiterGrant[] {
  if (reply.length <= from) return none;
  return rows(reply.slice(from), 5).map(([holdId, ...numbers]) => readClaim(String(holdId), numbers));
}

/** The numbers of a claim, in a reply or a message. An older version sends only the first two. */
function readClaim(holdId: string, numbers: readonly Item[]): WaiterGrant {
  const [fence, endMs, otherHolds, equalHolds] = numbers.map(Number) as [number, number, number?, number?];
  return { holdId, fence, endMs, isClaim: true, otherHolds, equalHolds };
}

const none: readonly WaiterGrant[] = [];

function rows(items: readonly Item[], width: number): Item[][] {
  return Array.from({ length: items.length / width }, (_, row) => items.slice(row * width, (row + 1) * width));
}

interface Mode {
  readonly mode: HoldMode;
  readonly permits?: number | undefined;
}

/** The mode of a request in the scripts, where a number of permits is a mode. */
export function modeOf({ mode, permits }: Mode): string {
  return permits === undefined ? mode : String(permits);
}

function readMode(text: string): Mode {
  return /^\d/.test(text) ? { mode: 'permit', permits: Number(text) } : { mode: text as HoldMode };
}
