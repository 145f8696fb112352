import type { Cluster, Redis } from 'ioredis';
import type { ListRequest } from '../../../model/store.ts';
import { storeError } from '../errors.ts';
import { awaitNodes, isCluster, primaryOf, type RedisOrCluster } from './cluster.ts';

/**
 * Reads the names of some locks that may be held or waited for, and the next cursor. It uses SCAN, so the work on the server
 * is bounded, and looks at the records of what SCAN found: most locks that were ever used are free. In a cluster the
 * primaries follow each other. Rejects with a `LockStoreError`.
 */
export async function scanLocks(
  client: RedisOrCluster,
  prefix: string,
  { idPrefix, limit, cursor }: ListRequest,
): Promise<{ readonly ids: readonly string[]; readonly cursor: string | undefined }> {
  // The client adds its key prefix to the keys of commands, but not to a pattern, and leaves it on the names in replies.
  const before = `${client.options.keyPrefix ?? ''}${prefix}{`;
  const pattern = `${escapeGlob(before + idPrefix)}*}:lock`;
  try {
    for (let from = cursor; ; ) {
      const { server, at, next } = await positionOf(client, from);
      const [reached, names] = await server.scan(at, 'MATCH', pattern, 'COUNT', limit);
      const used = await usedAmong(server, [...new Set(names)]);
      const ids = used.map((name) => name.slice(before.length, -'}:lock'.length));
      from = next(reached);
      // If a server of a cluster is done and had nothing, the next one is asked at once.
      const continues = isCluster(client) && reached === '0' && ids.length === 0 && from !== undefined;
      if (!continues) return { ids, cursor: from };
    }
  } catch (error) {
    throw storeError('list', error);
  }
}

/** The records that may have a hold or a waiter. A record that can't be read here may have one: `inspect` knows. */
async function usedAmong(server: Redis, names: readonly string[]): Promise<readonly string[]> {
  if (names.length === 0) return names;
  // Names come back with the key prefix of the client, which it adds to the keys of commands.
  const { length } = server.options.keyPrefix ?? '';
  const reads = names.map((name) => ['get', name.slice(length)]);
  const records = (await server.pipeline(reads).exec()) ?? [];
  return names.filter((_, index) => {
    const [error, record] = records[index] ?? [];
    return error || (typeof record === 'string' && mayBeUsed(record));
  });
}

/** See `lua/parts/layout.lua`: somebody may wait, or the first line is not of a release. */
function mayBeUsed(record: string): boolean {
  return record[16] === 'q' || (record[18] === '\n' && record[19] !== '#');
}

/** Where a listing stands: the server, and the server's own cursor. `next` makes the listing's cursor of the server's. */
interface Position {
  readonly server: Redis;
  readonly at: string;
  next(reached: string): string | undefined;
}

/**
 * The cursor of a cluster is "<index of the primary> <its cursor> <all primaries>". If the primaries are others by now, any
 * of them may have the locks of one that is gone: the listing begins again.
 */
async function positionOf(client: RedisOrCluster, cursor: string | undefined): Promise<Position> {
  if (!isCluster(client)) {
    return { server: client, at: cursor ?? '0', next: (reached) => (reached === '0' ? undefined : reached) };
  }
  await awaitNodes(client);
  const [index = '0', known = '0', before] = cursor?.split(' ') ?? [];
  let primaries = primariesOf(client);
  if (primaries.join() !== before || primaryOf(client, primaries[Number(index)] ?? '') === undefined) {
    // The client connects again to a server that it lost only when it reads the slots.
    await refreshSlots(client);
    primaries = primariesOf(client);
  }
  const all = primaries.join();
  const [number, at] = all === before ? [Number(index), known] : [0, '0'];
  const server = primaryOf(client, primaries[number] ?? '');
  if (server === undefined) throw new Error('The cluster has no such primary');
  const following = number + 1 < primaries.length ? `${number + 1} 0 ${all}` : undefined;
  return { server, at, next: (reached) => (reached === '0' ? following : `${number} ${reached} ${all}`) };
}

/** The names of the primaries, as the client knows them: it may be connected to only some of them. */
function primariesOf(cluster: Cluster): readonly string[] {
  return [...new Set(cluster.slots.flatMap(([primary]) => primary ?? []))].sort();
}

function refreshSlots(cluster: Cluster): Promise<void> {
  return new Promise((resolve, reject) => {
    cluster.refreshSlotsCache((error) => (error ? reject(error) : resolve()));
  });
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\^-]/g, '\\$&');
}
