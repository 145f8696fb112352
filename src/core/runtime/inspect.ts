import { type LockName, namePrefix, readName } from '../model/key.ts';
import { lockInfo } from '../model/lock-info.ts';
import { acquireRules } from '../model/options.ts';
import type { ForceReleaseOptions, InspectOptions, ListOptions, LockInfo, LockPage } from '../model/types.ts';
import { checkOptions, type Rules, text, wholeNumber } from '../model/validate.ts';
import type { Runtime } from './runtime.ts';

/** The holders and waiters of a lock. Rejects with `LockStoreError`. */
export async function inspectLock(runtime: Runtime, name: LockName): Promise<LockInfo> {
  return lockInfo(name, await runtime.client.inspect(name));
}

/**
 * Takes a lock from its holders, and emits `forced`. Returns false, and changes nothing, if nobody holds it or it has another
 * fence than the given one. Rejects with `LockStoreError`.
 */
export async function forceReleaseLock(
  runtime: Runtime,
  name: LockName,
  { fence: seen, by, reason }: ForceReleaseOptions = {},
): Promise<boolean> {
  const fence = seen ?? (await runtime.client.inspect(name)).holds[0]?.fence;
  if (fence === undefined) return false;
  const isDone = await runtime.client.forceRelease(name, fence);
  const { category } = readName(name.id);
  if (isDone) runtime.events.emit('forced', { key: name.key, category, fence, by, reason });
  return isDone;
}

/**
 * A page of the locks that are held or waited for. Throws `LockConfigError` for bad options, and for a store that can't
 * name its keys; rejects with `LockStoreError`.
 */
export async function listLocks(runtime: Runtime, options: ListOptions | undefined): Promise<LockPage> {
  const { prefix = '', category, limit = 100, cursor } = checkOptions(options, listRules, 'list');
  // Without a category the prefix is that of keys, and their names may begin with any category.
  const idPrefix = category === undefined ? '' : namePrefix(prefix, category);
  const page = await runtime.client.list({ idPrefix, limit, cursor });
  const infos = page.locks.map((lock) => lockInfo({ ...readName(lock.id), id: lock.id }, lock));
  const unreadable = (page.unreadable ?? []).map(readName);
  const matches = (info: Pick<LockInfo, 'key' | 'category'>): boolean =>
    (category === undefined || info.category === category) && info.key.startsWith(prefix);
  return { locks: infos.filter(matches), unreadable: unreadable.filter(matches), cursor: page.cursor };
}

/** The options of `locks.inspect`. */
export const inspectRules: Rules<InspectOptions> = { category: acquireRules.category };

/** The options of `locks.forceRelease`. */
export const forceReleaseRules: Rules<ForceReleaseOptions> = {
  ...inspectRules,
  fence: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  by: text(/^[\s\S]{1,256}$/, 'a string of 1 to 256 characters'),
  reason: text(/^[\s\S]{1,1000}$/, 'a string of 1 to 1000 characters'),
};

const listRules: Rules<ListOptions> = {
  prefix: text(/^[\s\S]{0,256}$/, 'a string of 256 characters at most'),
  category: acquireRules.category,
  limit: wholeNumber(1, 1000),
  cursor: text(/^[\s\S]+$/, 'the cursor of the previous page'),
};
