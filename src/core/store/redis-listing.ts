import type { Redis } from 'ioredis';
import { awaitNodes, isCluster, type RedisOrCluster } from './redis-cluster.ts';
import { storeError } from './redis-errors.ts';
import type { ListRequest } from './store.ts';

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

/** The cursor of a cluster is "<address of a primary> <its cursor>"; one that is gone leaves the place to the next. */
async function placeOf(client: RedisOrCluster, cursor: string | undefined): Promise<Place> {
  if (!isCluster(client)) {
    return { server: client, at: cursor ?? '0', on: (next) => (next === '0' ? undefined : next) };
  }
  await awaitNodes(client);
  const [address = '', known = '0'] = cursor?.split(' ') ?? [];
  const left = client
    .nodes('master')
    .map((server) => ({ server, name: `${server.options.host}:${server.options.port}` }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .filter(({ name }) => name >= address);
  const [first, second] = left;
  if (first === undefined) throw new Error('The primary that was being listed is gone');
  const at = first.name === address ? known : '0';
  const after = second && `${second.name} 0`;
  return { server: first.server, at, on: (next) => (next === '0' ? after : `${first.name} ${next}`) };
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\^-]/g, '\\$&');
}
