import { findCycle, type Link, readWaits, stands } from '../../../src/core/deadlock/cycle.ts';
import type { EdgeStore, WaitEdge, WaitReply } from '../../../src/core/model/store.ts';

/** `a` waits for k1 since 3, and holds k0; `b` waits for k0 since 2, and holds k1. */
const edges = { a: edge('a', 'k1'), b: edge('b', 'k0') };
const waits: Record<string, WaitReply> = {
  'a-k1': { sinceMs: 3, holds: [hold('b', 11)] },
  'b-k0': { sinceMs: 2, holds: [hold('a', 10)] },
};
const ring: readonly Link[] = [
  { edge: edges.a, sinceMs: 3, hold: hold('b', 11) },
  { edge: edges.b, sinceMs: 2, hold: hold('a', 10) },
];

describe('a ring', () => {
  it('is found by the last one in it', async () => {
    expect(await find(storeOf(), edges.a, ['a'])).toEqual(ring);
    expect(await find(storeOf(), edges.b, ['b'])).toBeUndefined();
  });

  it.each([
    ['a', 'b'],
    ['b', 'a'],
  ] as const)(
    'of waits of the same time is found by the one with the greatest hold id (%s, not %s)',
    async (own, _other) => {
      const holdIds = { a: own === 'a' ? 'z' : 'y', b: own === 'a' ? 'y' : 'z' };
      const named = { a: edge('a', 'k1', holdIds.a), b: edge('b', 'k0', holdIds.b) };
      const store = storeOf({
        of: async (owner) => [named[owner as 'a' | 'b']],
        wait: async ({ id }) => ({ ...waits[id === 'k1' ? 'a-k1' : 'b-k0']!, sinceMs: 2 }),
      });
      expect(await find(store, named.a, ['a'])).toEqual(own === 'a' ? expect.any(Array) : undefined);
      expect(await find(store, named.b, ['b'])).toEqual(own === 'b' ? expect.any(Array) : undefined);
    },
  );

  it('is found through any of several holders, and any of several waits of one', async () => {
    const store = storeOf({
      of: async (owner) => (owner === 'b' ? [edge('b', 'k7'), edges.b, edge('b', 'k8')] : []),
      wait: async ({ holdId }) =>
        holdId === 'a-k1'
          ? { sinceMs: 3, holds: [hold('x', 11), hold('b', 11), hold('y', 11)] }
          : (waits[holdId] ?? { sinceMs: 1, holds: [hold('z', 9)] }),
    });
    expect(await find(store, edges.a, ['a'])).toEqual(ring);
  });

  it('is none where the own wait, or that of another, has ended', async () => {
    for (const gone of ['a-k1', 'b-k0']) {
      const store = storeOf({
        wait: async ({ holdId }) => ({ ...waits[holdId]!, ...(holdId === gone && { sinceMs: undefined }) }),
      });
      expect(await find(store, edges.a, ['a'])).toBeUndefined();
    }
  });

  it('is searched for among so many owners, and no more', async () => {
    const asked = new Set<string>();
    const store = storeOf({
      of: async (owner) => {
        asked.add(owner);
        return [edge(owner, `k-${owner}`)];
      },
      wait: async ({ holdId }) => ({
        sinceMs: holdId === 'a-k1' ? 3 : 1,
        holds: Array.from({ length: 1_000 }, (_, n) => hold(`${holdId}-${n}`, 7)),
      }),
    });
    expect(await find(store, edges.a, ['a'])).toBeUndefined();
    expect(asked.size).toBe(64);
  });

  it.each([
    [255, ring],
    [256, undefined],
  ])('is searched for among so many waits at once, and no more: behind %i others', async (others, found) => {
    const store = storeOf({
      of: async () => [...Array.from({ length: others }, (_, n) => edge('b', `k${n + 2}`)), edges.b],
      wait: async ({ holdId }) => waits[holdId] ?? { sinceMs: 1, holds: [] },
    });
    expect(await find(store, edges.a, ['a'])).toEqual(found);
  });

  it('asks for all of a level in one turn', async () => {
    let turns = 0;
    let isCounted = false;
    const inTurn = async <T>(value: T): Promise<T> => {
      if (!isCounted) turns += 1;
      isCounted = true;
      await new Promise((resolve) => setImmediate(resolve));
      isCounted = false;
      return value;
    };
    const store = storeOf({
      of: (owner) => inTurn([1, 2, 3].map((n) => edge(owner, `k${n}-${owner}`))),
      wait: ({ holdId, owner }) =>
        inTurn({ sinceMs: holdId === 'a-k1' ? 3 : 1, holds: owner.length < 3 ? [hold(`${owner}x`, 1)] : [] }),
    });
    expect(await find(store, edges.a, ['a'])).toBeUndefined();
    // The own wait; then twice what an owner waits for, and those waits.
    expect(turns).toBe(5);
  });
});

describe('a ring that was seen stands', () => {
  it('where all of it is read again', async () => {
    expect(await stands(storeOf(), ring)).toBe(true);
  });

  it.each<[string, WaitReply]>([
    ['a wait is over', { ...waits['b-k0']!, sinceMs: undefined }],
    ['a wait was queued anew', { ...waits['b-k0']!, sinceMs: 5 }],
    ['a key is free', { sinceMs: 2, holds: [] }],
    ['a key is held with another fence', { sinceMs: 2, holds: [hold('a', 12)] }],
    [
      'a key is held with the same fence, by another hold',
      { sinceMs: 2, holds: [{ ...hold('a', 10), holdId: 'new' }] },
    ],
  ])('not where %s', async (_, reply) => {
    const store = storeOf({ wait: async ({ holdId }) => (holdId === 'b-k0' ? reply : waits[holdId]!) });
    expect(await stands(store, ring)).toBe(false);
  });
});

/** The cycle that a search finds for one wait. */
async function find(store: EdgeStore, own: WaitEdge, owners: readonly string[]): Promise<readonly Link[] | undefined> {
  const { sinceMs, holds } = await store.wait(own.request);
  if (sinceMs === undefined) return undefined;
  return findCycle({ edge: own, sinceMs, holds }, owners, await readWaits(store, holds));
}

function storeOf(over: Partial<EdgeStore> = {}): EdgeStore {
  return {
    set: async () => {},
    clear: async () => {},
    of: async (owner) => [edges[owner as 'a' | 'b']],
    wait: async ({ holdId }) => waits[holdId]!,
    ...over,
  };
}

function edge(owner: string, id: string, holdId = `${owner}-${id}`): WaitEdge {
  return {
    request: { id, holdId, owner, process: 'p', claimMs: 1_000, mode: 'write' as const, priority: 0 },
    traceId: owner,
    key: id,
  };
}

function hold(owner: string, fence: number): WaitReply['holds'][number] {
  return { holdId: `held-by-${owner}`, owner, fence };
}
