import { createHash } from 'node:crypto';
import { type LockName, lockName } from './key.ts';
import { acquireRules } from './options.ts';
import { detachedOwner } from './owner.ts';
import { detachedProcess } from './process-name.ts';
import type { HoldRequest } from './store.ts';

/** A hold that belongs to no process, as its token describes it. */
export interface DetachedHold {
  readonly name: LockName;
  readonly request: HoldRequest;
}

const form = /^v1\.([A-Za-z0-9_-]{1,40000})\.[A-Za-z0-9]{32}$/;

/** Makes the token of a hold that is to be detached. `secret` is a new random id. */
export function createToken(
  { key, category }: Pick<LockName, 'key' | 'category'>,
  { mode, permits }: Pick<HoldRequest, 'mode' | 'permits'>,
  secret: string,
): string {
  const named = Buffer.from(JSON.stringify([mode, key, category, permits])).toString('base64url');
  return `v1.${named}.${secret}`;
}

/**
 * The hold that a token is for; undefined if it is no token. The hold id is the token's digest: nobody can make the token
 * from a list of locks, and an altered token is for a hold that does not exist.
 */
export function readToken(token: unknown): DetachedHold | undefined {
  const [, named] = (typeof token === 'string' && form.exec(token)) || [];
  if (named === undefined) return undefined;
  try {
    const [mode, key, category, permits] = JSON.parse(Buffer.from(named, 'base64url').toString()) as unknown[];
    const terms = termsOf(mode, permits);
    if (terms === undefined) return undefined;
    const name = lockName(key, typeof category === 'string' ? category : undefined);
    const holdId = createHash('sha256').update(`reenlock hold ${token}`).digest('hex').slice(0, 32);
    const owner = detachedOwner(holdId);
    return {
      name,
      request: { id: name.id, holdId, owner, process: detachedProcess, claimMs: 1, priority: 0, ...terms },
    };
  } catch {
    return undefined; // It is not JSON, or names no key.
  }
}

/** The mode of a hold, with its permits; undefined if there are no such terms. */
function termsOf(mode: unknown, permits: unknown): Pick<HoldRequest, 'mode' | 'permits'> | undefined {
  if (mode === 'read' || mode === 'write') return { mode };
  return mode === 'permit' && acquireRules.permits.accepts(permits) ? { mode, permits: permits as number } : undefined;
}
