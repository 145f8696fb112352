import type { EdgeStore, WaitEdge, WaitReply } from '../model/store.ts';

/** One wait of a cycle, and the hold that it waits for. */
export interface Link {
  readonly edge: WaitEdge;
  readonly sinceMs: number;
  readonly hold: WaitReply['holds'][number];
}

/** A search ends at so many owners: a longer or wider cycle is not found. */
const maxOwners = 64;
/** So many waits are looked up at once, if the branches of a few owners have very many. */
const maxWaits = 256;

/**
 * Searches for a cycle in which all other waits were queued before `own`, the wait of `owners`, and returns it from there
 * on. All lookups of one level travel together. The links of the cycle need not have stood at the same time.
 */
export async function findCycle(
  store: EdgeStore,
  own: WaitEdge,
  owners: readonly string[],
): Promise<readonly Link[] | undefined> {
  const { sinceMs, holds } = await store.wait(own.request);
  if (sinceMs === undefined) return undefined;
  const seen = new Set(owners);
  // A wait for its own owner is no wait for others: an acquire with `owner: 'hold'` means to wait for its own trace.
  let paths = unseen(holds, seen).map((hold) => [{ edge: own, sinceMs, hold }]);
  while (paths.length > 0) {
    const waits = await waitsOf(store, paths);
    const replies = await Promise.all(waits.map(({ edge }) => store.wait(edge.request)));
    paths = [];
    for (const [index, { edge, path }] of waits.entries()) {
      const reply = replies[index] as WaitReply;
      const since = reply.sinceMs;
      if (since === undefined || !isBefore(since, edge, sinceMs, own)) continue;
      const closing = reply.holds.find((hold) => owners.includes(hold.owner));
      if (closing !== undefined) return [...path, { edge, sinceMs: since, hold: closing }];
      for (const hold of unseen(reply.holds, seen)) paths.push([...path, { edge, sinceMs: since, hold }]);
    }
  }
  return undefined;
}

/** Whether every wait of a cycle, and every hold that it is for, is still the one that was seen. */
export async function stands(store: EdgeStore, cycle: readonly Link[]): Promise<boolean> {
  const replies = await Promise.all(cycle.map(({ edge }) => store.wait(edge.request)));
  return cycle.every(({ sinceMs, hold }, index) => {
    const reply = replies[index] as WaitReply;
    const isSame = (other: Link['hold']): boolean => other.holdId === hold.holdId && other.fence === hold.fence;
    return reply.sinceMs === sinceMs && reply.holds.some(isSame);
  });
}

interface Step {
  readonly edge: WaitEdge;
  readonly path: readonly Link[];
}

/** The published waits of the owners at the ends of these paths. */
async function waitsOf(store: EdgeStore, paths: readonly (readonly Link[])[]): Promise<Step[]> {
  const edges = await Promise.all(paths.map((path) => store.of((path.at(-1) as Link).hold.owner)));
  return paths.flatMap((path, index) => (edges[index] ?? []).map((edge) => ({ edge, path }))).slice(0, maxWaits);
}

/** One hold of each owner that was not seen before; marks the owners as seen. */
function unseen(holds: WaitReply['holds'], seen: Set<string>): Link['hold'][] {
  return holds.filter(({ owner }) => {
    if (seen.has(owner) || seen.size >= maxOwners) return false;
    seen.add(owner);
    return true;
  });
}

function isBefore(sinceMs: number, edge: WaitEdge, ownSinceMs: number, own: WaitEdge): boolean {
  if (sinceMs !== ownSinceMs) return sinceMs < ownSinceMs;
  return edge.request.holdId < own.request.holdId;
}
