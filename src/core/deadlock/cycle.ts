import { isAncestor, rootOf } from '../model/owner.ts';
import type { EdgeStore, WaitEdge, WaitReply } from '../model/store.ts';

type Hold = WaitReply['holds'][number];

/** A wait, as read from the store: since when it is queued, and the holds of the key. */
export interface KnownWait {
  readonly edge: WaitEdge;
  readonly sinceMs: number;
  readonly holds: readonly Hold[];
}

/** One wait of a cycle, and the hold that it waits for. */
export interface Link {
  readonly edge: WaitEdge;
  readonly sinceMs: number;
  readonly hold: Hold;
}

/** A search ends at this many owners: a longer or wider cycle is not found. */
const maxOwners = 64;
/** At most this many waits of one level are looked up: the branches of a few owners may have very many. */
const maxWaits = 256;

/**
 * Reads the waits of a lock's holders, the waits of those keys' holders, and so on, by owner. All reads of one level travel
 * together. The waits that it returns need not have existed at the same time.
 */
export async function readWaits(store: EdgeStore, holds: readonly Hold[]): Promise<Map<string, KnownWait[]>> {
  const waits = new Map<string, KnownWait[]>();
  const seen = new Set<string>();
  let owners = unseen(holds, seen).map(({ owner }) => owner);
  while (owners.length > 0) {
    const edges = await Promise.all(
      owners.map(async (owner) => (await store.of(owner)).map((edge) => ({ owner, edge }))),
    );
    const steps = edges.flat().slice(0, maxWaits);
    const replies = await Promise.all(steps.map(({ edge }) => store.wait(edge.request)));
    owners = [];
    for (const [index, { owner, edge }] of steps.entries()) {
      const reply = replies[index] as WaitReply;
      // A wait that has ended makes no cycle.
      if (reply.sinceMs === undefined) continue;
      waits.set(owner, [...(waits.get(owner) ?? []), { edge, sinceMs: reply.sinceMs, holds: reply.holds }]);
      owners.push(...unseen(reply.holds, seen).map((hold) => hold.owner));
    }
  }
  return waits;
}

/**
 * Searches the known waits for a cycle in which all others were queued before `own`, the wait of `owners`, and returns it from
 * there on. Its links need not have existed at the same time.
 */
export function findCycle(
  own: KnownWait,
  owners: readonly string[],
  waits: ReadonlyMap<string, readonly KnownWait[]>,
): readonly Link[] | undefined {
  const seen = new Set(owners);
  const { edge, sinceMs } = own;
  // A holder of the same trace that stands still while this one waits.
  const direct = blocking(own).find(
    ({ owner }) => owners.includes(owner) && rootOf(owner) === rootOf(edge.request.owner),
  );
  if (direct !== undefined) return [{ edge, sinceMs, hold: direct }];
  // A wait for its own owner is no wait for others: an acquire with `reentrant: false` means to wait for its own trace.
  let paths: readonly Link[][] = unseen(blocking(own), seen).map((hold) => [{ edge, sinceMs, hold }]);
  while (paths.length > 0) {
    const longer: Link[][] = [];
    for (const path of paths) {
      const next = waits.get((path.at(-1) as Link).hold.owner) ?? [];
      for (const wait of next.filter((other) => isBefore(other, own))) {
        const closing = blocking(wait).find((hold) => owners.includes(hold.owner));
        if (closing !== undefined) return [...path, { edge: wait.edge, sinceMs: wait.sinceMs, hold: closing }];
        for (const hold of unseen(blocking(wait), seen)) {
          longer.push([...path, { edge: wait.edge, sinceMs: wait.sinceMs, hold }]);
        }
      }
    }
    paths = longer;
  }
  return undefined;
}

/** Whether every wait of a cycle, and the hold that it waits for, still exist. */
export async function stands(store: EdgeStore, cycle: readonly Link[]): Promise<boolean> {
  const replies = await Promise.all(cycle.map(({ edge }) => store.wait(edge.request)));
  return cycle.every(({ sinceMs, hold }, index) => {
    const reply = replies[index] as WaitReply;
    const isSame = (other: Hold): boolean => other.holdId === hold.holdId && other.fence === hold.fence;
    return reply.sinceMs === sinceMs && reply.holds.some(isSame);
  });
}

/** The holds that keep a waiter waiting: those of its ancestors do not. */
function blocking({ edge, holds }: KnownWait): readonly Hold[] {
  return holds.filter(({ owner }) => !isAncestor(owner, edge.request.owner));
}

/** One hold of each owner that was not seen before; marks the owners as seen. */
function unseen(holds: readonly Hold[], seen: Set<string>): Hold[] {
  return holds.filter(({ owner }) => {
    if (seen.has(owner) || seen.size >= maxOwners) return false;
    seen.add(owner);
    return true;
  });
}

function isBefore(wait: KnownWait, own: KnownWait): boolean {
  if (wait.sinceMs !== own.sinceMs) return wait.sinceMs < own.sinceMs;
  return wait.edge.request.holdId < own.edge.request.holdId;
}
