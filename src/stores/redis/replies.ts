import type {
  AcquireReply,
  InspectReply,
  ReleaseReply,
  RenewReply,
  StoreGrant,
  StoreMessage,
  TransferReply,
} from '../../core/model/store.ts';
import type { HoldMode } from '../../core/model/types.ts';
import type { Item } from './scripts.ts';

/** The short answer of acquire.lua: granted for the whole lease. It is the fence, which is then the server's time in µs. */
export function readGrant(holdId: string, fence: number, leaseMs: number): AcquireReply {
  const nowMs = Math.floor(fence / 1000);
  const grant = { holdId, fence, endMs: nowMs + leaseMs, isClaim: false };
  return { status: 'granted', grant, otherHolds: 0, nowMs, claims: none };
}

/** The long answer of acquire.lua, which lists its parts. */
export function readAcquire(holdId: string, reply: Item[]): AcquireReply {
  const [status, now, third, fourth, fifth, others] = reply as [AcquireReply['status'], Item, Item, Item, Item, Item];
  const nowMs = Number(now);
  const claims = readClaims(reply, 6);
  if (status === 'granted') {
    const grant = { holdId, fence: Number(third), endMs: Number(fourth), isClaim: Number(fifth) === 1 };
    return { status, grant, otherHolds: Number(others), nowMs, claims };
  }
  if (status === 'cancelled') return { status, nowMs, claims };
  if (status === 'mismatch') return { status, permits: Number(third) || undefined, nowMs, claims };
  const leaseRemainingMs = Number(third) - nowMs;
  const position = Number(fifth);
  if (status === 'queued') {
    const [isNew, isNewestLost] = [Number(fourth) === 1, Number(others) === 1 || undefined];
    return { status, isNew, leaseRemainingMs, position, isNewestLost, nowMs, claims };
  }
  return { status, leaseRemainingMs, position, nowMs, claims };
}

/** The answer of renew.lua. */
export function readRenew(reply: unknown): RenewReply {
  const [status, now, end] = reply as [RenewReply['status'], Item, Item];
  return status === 'renewed' ? { status, endMs: Number(end), nowMs: Number(now) } : { status };
}

/** The answer of transfer.lua. */
export function readTransfer(holdId: string, reply: unknown): TransferReply {
  const [status, now, fence, end] = reply as [TransferReply['status'], Item, Item, Item];
  if (status !== 'granted') return { status };
  return { status, grant: { holdId, fence: Number(fence), endMs: Number(end), isClaim: false }, nowMs: Number(now) };
}

/** The answer of release.lua; the short one is the time alone: it held, and the process has no other claim open. */
export function readRelease(reply: unknown): ReleaseReply {
  if (!Array.isArray(reply)) return { status: 'released', nowMs: Number(reply), claims: none };
  const items: Item[] = reply;
  const [status, now] = items as [ReleaseReply['status'], Item];
  return { status, nowMs: Number(now), claims: readClaims(items, 2) };
}

/** The answer of inspect.lua. */
export function readInspect(reply: unknown): InspectReply {
  const [now, holds, waiters, count] = reply as [Item, Item[], Item[], Item];
  const permits = Number(count) || undefined;
  return {
    nowMs: Number(now),
    permits,
    holds: rows(holds, 6).map(([holdId, owner, process, fence, end, kind]) => ({
      holdId: String(holdId),
      owner: String(owner),
      process: String(process),
      fence: Number(fence),
      endMs: Number(end),
      isClaim: /[A-Z]/.test(String(kind)),
      mode: modeOf(kind, permits),
    })),
    waiters: rows(waiters, 6).map(([holdId, owner, process, mode, priority, since]) => ({
      holdId: String(holdId),
      owner: String(owner),
      process: String(process),
      mode: modeOf(mode, permits),
      priority: Number(priority),
      sinceMs: Number(since) / 1000,
    })),
  };
}

/** What a script published; undefined where another did. */
export function readMessage(text: string): StoreMessage | undefined {
  const [kind, holdId, fence, end] = text.split(' ');
  if (holdId === undefined) return undefined;
  if (kind === 'lost' || kind === 'next') return { kind, holdId };
  if (kind === 'freed') return { kind, id: holdId };
  if (kind !== 'granted') return undefined;
  return { kind, grant: { holdId, fence: Number(fence), endMs: Number(end), isClaim: true } };
}

function readClaims(reply: readonly Item[], from: number): readonly StoreGrant[] {
  if (reply.length <= from) return none;
  const claims: StoreGrant[] = [];
  for (let i = from; i < reply.length; i += 3) {
    claims.push({ holdId: String(reply[i]), fence: Number(reply[i + 1]), endMs: Number(reply[i + 2]), isClaim: true });
  }
  return claims;
}

const none: readonly StoreGrant[] = [];

function rows(items: readonly Item[], width: number): Item[][] {
  return Array.from({ length: items.length / width }, (_, row) => items.slice(row * width, (row + 1) * width));
}

/** Of a letter or a kind; see lua/parts/layout.lua. */
function modeOf(kind: unknown, permits: number | undefined): HoldMode {
  if (permits !== undefined) return 'permit';
  return kind === 'w' || kind === 'W' ? 'write' : 'read';
}
