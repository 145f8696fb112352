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

type HoldTerms = Pick<HoldRequest, 'mode' | 'permits'>;

const form = /^v1\.([A-Za-z0-9_-]{1,40000})\.[A-Za-z0-9]{32}$/;

/** Makes the token of a hold that is to be detached, and that hold. `secret` is a new random id. */
export function createToken(
  { id, key, category }: LockName,
  { mode, permits }: HoldTerms,
  secret: string,
): { readonly token: string; readonly request: HoldRequest } {
  const named = Buffer.from(JSON.stringify([mode, key, category, permits])).toString('base64url');
  const token = `v1.${named}.${secret}`;
  return { token, request: requestOf(token, id, { mode, permits }) };
}

/** The hold that a token is for; undefined if it is no token. */
export function readToken(token: string): DetachedHold | undefined {
  const [, named] = (typeof token === 'string' && form.exec(token)) || [];
  if (named === undefined) return undefined;
  try {
    const [mode, key, category, permits] = JSON.parse(Buffer.from(named, 'base64url').toString()) as unknown[];
    const terms = termsOf(mode, permits);
    if (terms === undefined) return undefined;
    const name = lockName(key, typeof category === 'string' ? category : undefined);
    return { name, request: requestOf(token, name.id, terms) };
  } catch {
    return undefined; // It is not JSON, or names no key.
  }
}

/**
 * The hold id is the token's digest: nobody can make the token from a list of locks, and an altered token is for a hold that does
 * not exist.
 */
function requestOf(token: string, id: string, terms: HoldTerms): HoldRequest {
  const holdId = createHash('sha256').update(`reenlock hold ${token}`).digest('hex').slice(0, 32);
  return { id, holdId, owner: detachedOwner(holdId), process: detachedProcess, claimMs: 1, priority: 0, ...terms };
}

/** The mode of a hold, with its permits; undefined if there are no such terms. */
function termsOf(mode: unknown, permits: unknown): HoldTerms | undefined {
  if (mode === 'read' || mode === 'write') return { mode };
  return mode === 'permit' && acquireRules.permits.accepts(permits) ? { mode, permits: permits as number } : undefined;
}
