import type { ListRequest } from '../../../core/model/store.ts';
import type { RedisDriver, RedisSender } from '../drivers/driver.ts';
import { connected, storeError } from '../errors.ts';

/**
 * Reads the names of some locks that may be held or waited for, and the next cursor. It uses SCAN, so the work on the server
 * is bounded, and looks at the records of what SCAN found: most locks that were ever used are free. In a cluster the
 * primaries follow each other. Rejects with a `LockStoreError`.
 */
export async function scanLocks(
  driver: RedisDriver,
  prefix: string,
  { idPrefix, limit, cursor }: ListRequest,
): Promise<{ readonly ids: readonly string[]; readonly cursor: string | undefined }> {
  // The client adds its key prefix to the keys of commands, but not to a pattern, and leaves it on the names in replies.
  const before = `${driver.keyPrefix}${prefix}{`;
  const pattern = `${escapeGlob(before + idPrefix)}*}:lock`;
  await connected(driver, 'list');
  try {
    for (let from = cursor; ; ) {
      const { server, at, next } = await positionOf(driver, from);
      const page = await server.send(['scan', at, 'MATCH', pattern, 'COUNT', limit]);
      const [reached, names] = page as [string, string[]];
      const used = await usedAmong(server, [...new Set(names)]);
      const ids = used.map((name) => name.slice(before.length, -'}:lock'.length));
      from = next(reached);
      // If a server of a cluster is done and had nothing, continue with the next one at once.
      const continues = driver.cluster && reached === '0' && ids.length === 0 && from !== undefined;
      if (!continues) return { ids, cursor: from };
    }
  } catch (error) {
    throw storeError(driver, 'list', error);
  }
}

/** The locks that may have a hold or a waiter. A lock that can't be read here may have one: `inspect` knows. */
async function usedAmong(server: RedisSender, names: readonly string[]): Promise<readonly string[]> {
  if (names.length === 0) return names;
  // Replies have the names with the key prefix that is added to the keys of commands.
  const fields = ['format', 'ends', 'queued'];
  const locks = await server.sendAll(names.map((name) => ['hmget', name.slice(server.keyPrefix.length), ...fields]));
  return names.filter((_, index) => {
    const lock = locks[index];
    if (lock?.status !== 'fulfilled') return true;
    const [format, ends, queued] = lock.value as (string | null)[];
    return format !== '1' || ends !== null || queued !== null;
  });
}

/** The position of a listing: the server, and the server's own cursor. `next` turns that into the cursor of the listing. */
interface Position {
  readonly server: RedisSender;
  readonly at: string;
  next(reached: string): string | undefined;
}

/**
 * The cursor of a cluster is "<index of the primary> <its cursor> <all primaries>". If the primaries have changed, any of them
 * may have the locks of one that is gone: the listing begins again.
 */
async function positionOf(driver: RedisDriver, cursor: string | undefined): Promise<Position> {
  const { cluster } = driver;
  if (cluster === undefined) {
    return { server: driver, at: cursor ?? '0', next: (reached) => (reached === '0' ? undefined : reached) };
  }
  const [index = '0', known = '0', before] = cursor?.split(' ') ?? [];
  let primaries = cluster.primaries();
  if (primaries.join() !== before || cluster.node(primaries[Number(index)] ?? '') === undefined) {
    await cluster.refresh();
    primaries = cluster.primaries();
  }
  const all = primaries.join();
  const [number, at] = all === before ? [Number(index), known] : [0, '0'];
  const server = cluster.node(primaries[number] ?? '');
  if (server === undefined) throw new Error('The cluster has no such primary');
  const following = number + 1 < primaries.length ? `${number + 1} 0 ${all}` : undefined;
  return { server, at, next: (reached) => (reached === '0' ? following : `${number} ${reached} ${all}`) };
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\^-]/g, '\\$&');
}
