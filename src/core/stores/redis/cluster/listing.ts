import type { Cluster, Redis } from 'ioredis';
import type { ListRequest } from '../../../model/store.ts';
import { storeError } from '../errors.ts';
import { awaitNodes, isCluster, primaryOf, type RedisOrCluster } from './cluster.ts';

/**
 * The names of some locks that have a record, held or not, by SCAN: bounded work on the server, and the next cursor.
 * In a cluster the primaries come one after the other. Rejects with a `LockStoreError`.
 */
export async function scanLocks(
  client: RedisOrCluster,
  prefix: string,
  { idPrefix, limit, cursor }: ListRequest,
): Promise<{ readonly ids: readonly string[]; readonly cursor: string | undefined }> {
  // The client puts its own prefix before the keys of commands, not into a pattern, nor off the names that come back.
  const before = `${client.options.keyPrefix ?? ''}${prefix}{`;
  const pattern = `${escapeGlob(before + idPrefix)}*}:lock`;
  try {
    for (let from = cursor; ; ) {
      const { server, at, on } = await placeOf(client, from);
      const [next, names] = await server.scan(at, 'MATCH', pattern, 'COUNT', limit);
      const ids = names.map((name) => name.slice(before.length, -'}:lock'.length));
      from = on(next);
      // Each server of a cluster is begun at once when the one before it is done and had nothing.
      const goesOn = isCluster(client) && next === '0' && ids.length === 0 && from !== undefined;
      if (!goesOn) return { ids: [...new Set(ids)], cursor: from };
    }
  } catch (error) {
    throw storeError('list', error);
  }
}

/** Where a listing stands: on which server, and there; with what makes the next cursor of the server's. */
interface Place {
  readonly server: Redis;
  readonly at: string;
  on(next: string): string | undefined;
}

/**
 * The cursor of a cluster is "<which primary> <its cursor> <all primaries>". Where those are others by now, any of them may
 * have the locks of one that is gone: the listing begins anew.
 */
async function placeOf(client: RedisOrCluster, cursor: string | undefined): Promise<Place> {
  if (!isCluster(client)) {
    return { server: client, at: cursor ?? '0', on: (next) => (next === '0' ? undefined : next) };
  }
  await awaitNodes(client);
  const [index = '0', known = '0', before] = cursor?.split(' ') ?? [];
  let names = namesOf(client);
  if (names.join() !== before || primaryOf(client, names[Number(index)] ?? '') === undefined) {
    // Only then does the client connect again to a server that it lost.
    await learnNodes(client);
    names = namesOf(client);
  }
  const all = names.join();
  const [number, at] = all === before ? [Number(index), known] : [0, '0'];
  const server = primaryOf(client, names[number] ?? '');
  if (server === undefined) throw new Error('The cluster has no such primary');
  const after = number + 1 < names.length ? `${number + 1} 0 ${all}` : undefined;
  return { server, at, on: (next) => (next === '0' ? after : `${number} ${next} ${all}`) };
}

/** The primaries, as the client has them: it may have a connection to some only. */
function namesOf(cluster: Cluster): readonly string[] {
  return [...new Set(cluster.slots.flatMap(([primary]) => primary ?? []))].sort();
}

function learnNodes(cluster: Cluster): Promise<void> {
  return new Promise((resolve, reject) => {
    cluster.refreshSlotsCache((error) => (error ? reject(error) : resolve()));
  });
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\^-]/g, '\\$&');
}
