import { storeError } from './redis-errors.ts';
import type { RedisClient } from './redis-scripts.ts';
import type { ListRequest } from './store.ts';

/**
 * The names of some locks that have a record, held or not, by SCAN: bounded work on the server, and the next cursor.
 * Rejects with a `LockStoreError`.
 */
export async function scanLocks(
  client: RedisClient,
  prefix: string,
  { idPrefix, limit, cursor }: ListRequest,
): Promise<{ readonly ids: readonly string[]; readonly cursor: string | undefined }> {
  // The client puts its own prefix before the keys of commands, not into a pattern, nor off the names that come back.
  const before = `${client.options.keyPrefix ?? ''}${prefix}{`;
  const pattern = `${escapeGlob(before + idPrefix)}*}:lock`;
  try {
    const [next, names] = await client.scan(cursor ?? '0', 'MATCH', pattern, 'COUNT', limit);
    const ids = names.map((name) => name.slice(before.length, -'}:lock'.length));
    return { ids: [...new Set(ids)], cursor: next === '0' ? undefined : next };
  } catch (error) {
    throw storeError('list', error);
  }
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\^-]/g, '\\$&');
}
