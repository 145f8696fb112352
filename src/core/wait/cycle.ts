import type { EdgeStore, WaitEdge, WaitReply } from '../model/store.ts';

/** One wait of a ring, and the hold for whose end it waits. */
export interface Link {
  readonly edge: WaitEdge;
  readonly sinceMs: number;
  readonly hold: WaitReply['holds'][number];
}

/** At so many owners a search ends, and a longer or wider ring is not found. */
const mostOwners = 64;
/** So many waits are looked up at once, where the branches of a few owners have very many. */
const mostWaits = 256;

/**
 * Searches for a ring in which all others were queued before `own`, the wait of `owners`, and answers it from there on. All
 * lookups of one level travel together. Not all of the ring need have stood at the same time.
 */
export async function findCycle(
  store: EdgeStore,
  own: WaitEdge,
  owners: readonly string[],
): Promise<readonly Link[] | undefined> {
  const { sinceMs, holds } = await store.wait(own.request);
  if (sinceMs === undefined) return undefined;
  const seen = new Set(owners);
  // A wait for oneself is none for others: who takes a key that its own trace holds, for `owner: 'hold'`, means to wait.
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

/** Whether every wait of a ring, and every hold that it is for, is still the one that was seen. */
export async function stands(store: EdgeStore, ring: readonly Link[]): Promise<boolean> {
  const replies = await Promise.all(ring.map(({ edge }) => store.wait(edge.request)));
  return ring.every(({ sinceMs, hold }, index) => {
    const reply = replies[index] as WaitReply;
    const isSame = (other: Link['hold']): boolean => other.holdId === hold.holdId && other.fence === hold.fence;
    return reply.sinceMs === sinceMs && reply.holds.some(isSame);
  });
}

interface Step {
  readonly edge: WaitEdge;
  readonly path: readonly Link[];
}

/** What the owners at the ends of these paths are said to wait for. */
async function waitsOf(store: EdgeStore, paths: readonly (readonly Link[])[]): Promise<Step[]> {
  const edges = await Promise.all(paths.map((path) => store.of((path.at(-1) as Link).hold.owner)));
  return paths.flatMap((path, index) => (edges[index] ?? []).map((edge) => ({ edge, path }))).slice(0, mostWaits);
}

/** One hold of each owner that was not seen before; from here on it was. */
function unseen(holds: WaitReply['holds'], seen: Set<string>): Link['hold'][] {
  return holds.filter(({ owner }) => {
    if (seen.has(owner) || seen.size >= mostOwners) return false;
    seen.add(owner);
    return true;
  });
}

function isBefore(sinceMs: number, edge: WaitEdge, ownSinceMs: number, own: WaitEdge): boolean {
  if (sinceMs !== ownSinceMs) return sinceMs < ownSinceMs;
  return edge.request.holdId < own.request.holdId;
}
