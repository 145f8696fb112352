import { LockConfigError, type LockStoreError } from '../model/errors.ts';
import { namePrefix, readName } from '../model/key.ts';
import { acquireRules } from '../model/options.ts';
import type { InspectReply, ListReply } from '../model/store.ts';
import type { ListOptions, LockInfo, LockPage } from '../model/types.ts';
import { checkOptions, type Rules, text, wholeNumber } from '../model/validate.ts';
import type { Runtime } from './runtime.ts';

/** What a store told of a lock, in the words of the application. */
export function lockInfo(key: string, { nowMs, holds, waiters }: InspectReply): LockInfo {
  return {
    key,
    holds: holds.map(({ holdId, owner, fence, mode, endMs }) => ({
      holdId,
      owner,
      fence,
      mode,
      remainingMs: endMs - nowMs,
    })),
    waiters: waiters.map(({ holdId, owner, mode, priority, sinceMs }) => ({
      holdId,
      owner,
      mode,
      priority,
      // It may have been queued within this millisecond, or before the store's clock was set back.
      waitedMs: Math.max(0, nowMs - sinceMs),
    })),
  };
}

/**
 * A page of the locks that are held or waited for. Throws `LockConfigError` for bad options, and for a store that can't
 * name its keys; rejects with `LockStoreError`.
 */
export async function listLocks(
  { store, calls, clock, events, settings }: Runtime,
  options: ListOptions | undefined,
): Promise<LockPage> {
  const { prefix = '', category, limit = 100, cursor } = checkOptions(options, rules, 'list');
  const list = store.list?.bind(store);
  if (list === undefined) {
    throw new LockConfigError('Expected a store that can list its locks, got one that lacks `list`');
  }
  const request = { idPrefix: namePrefix(prefix, category), limit, cursor };
  const reply = calls.run('list', clock.now(), settings.storeTimeoutMs, () => list(request));
  const page = await reply.catch((error: LockStoreError) => {
    events.emit('storeError', { operation: 'list', error });
    throw error;
  });
  return { locks: page.locks.flatMap((lock) => namedInfo(lock, category)), cursor: page.cursor };
}

const rules: Rules<ListOptions> = {
  prefix: text(/^[\s\S]{0,256}$/, 'a string of 256 characters at most'),
  category: acquireRules.category,
  limit: wholeNumber(1, 1000),
  cursor: text(/^[\s\S]+$/, 'what the page before said'),
};

/** Nothing for the lock of another category, whose name may begin with the same letters. */
function namedInfo(lock: ListReply['locks'][number], category: string | undefined): LockInfo[] {
  const name = readName(lock.id);
  return name.category === category ? [lockInfo(name.key, lock)] : [];
}
