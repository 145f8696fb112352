import type { Cluster } from 'ioredis';
import type { ListReply } from '../../../../src/core/model/store.ts';
import { RedisStore } from '../../../../src/stores/redis/redis-store.ts';
import { newestClusterLibraries } from '../../../support/redis/cluster-clients.ts';
import { useCluster } from '../../../support/redis/cluster-stage.ts';
import { until } from '../../../support/until.ts';

jest.setTimeout(120_000);

describe('a listing of a cluster', () => {
  const stage = useCluster();
  let client: Cluster;
  let store: RedisStore;
  beforeEach(async () => {
    client = await stage.connect({ retryDelayOnFailover: 10, retryDelayOnClusterDown: 10 });
    store = new RedisStore({ client });
  });
  afterEach(() => client.disconnect());

  const record = (id: string): string => `reenlock:{${id}}:lock`;
  const ids = Array.from({ length: 60 }, (_, i) => `id-${i}`);

  async function hold(): Promise<void> {
    for (const id of ids) await stage.deafProcess().line(undefined, { id }).hold();
  }

  /** The pages from a cursor on, each small, and what they name. */
  async function* pages(from?: string): AsyncGenerator<ListReply & { readonly ids: readonly string[] }> {
    let cursor = from;
    do {
      const page = await store.list({ idPrefix: '', limit: 1, cursor });
      cursor = page.cursor;
      yield { ...page, ids: page.locks.map(({ id }) => id) };
    } while (cursor !== undefined);
  }

  it('A listing names the locks of a primary to which the client has lost its connection', async () => {
    await hold();
    for (const node of client.nodes('master').slice(0, 2)) node.disconnect();
    await until(() => client.nodes('master').length === 1);
    const seen = new Set<string>();
    for await (const page of pages()) for (const id of page.ids) seen.add(id);
    expect([...seen].sort()).toEqual([...ids].sort());
  });

  it.each(newestClusterLibraries)(
    'With $name a listing fails while a primary is gone, and names every lock once another has taken over, wherever that is',
    async (library) => {
      store = new RedisStore({ client: await stage.open(library, { maxRedirections: 16 }) });
      const first = await stage.cluster.serversOf(record(ids[0]!));
      // The new one is before the old one in any order of addresses.
      if (first.primary.port < first.replica.port) await stage.cluster.failOver(first.replica);
      const { primary, replica } = await stage.cluster.serversOf(record(ids[0]!));
      await hold();
      await stage.synced(primary);
      const keys = (await stage.cluster.call(primary, 'KEYS', '*')) as string[];
      const own = new Set(ids.filter((id) => keys.includes(record(id))));
      const seen = new Set<string>();
      let cursor: string | undefined;
      for await (const page of pages()) {
        cursor = page.cursor;
        for (const id of page.ids) seen.add(id);
        if ([...own].filter((id) => seen.has(id)).length > own.size / 2) break;
      }
      expect([...own].some((id) => !seen.has(id))).toBe(true);

      await primary.kill();
      const page = store.list({ idPrefix: '', limit: 1, cursor });
      await expect(page).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
      await until(() => stage.isPrimary(replica));
      // Some servers may not know of the new one yet, and the client asks any of them.
      const rest = new Set<string>();
      await until(async () => {
        rest.clear();
        try {
          for await (const more of pages(cursor)) for (const id of more.ids) rest.add(id);
          return true;
        } catch (error) {
          expect(error).toMatchObject({ code: 'ERR_LOCK_STORE' });
          return false;
        }
      });
      expect([...new Set([...seen, ...rest])].sort()).toEqual([...ids].sort());
      await primary.restart();
      await stage.cluster.settled();
    },
  );
});
