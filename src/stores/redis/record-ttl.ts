import { createHash } from 'node:crypto';
import { acquire, forceRelease, release, renew, settings, transfer } from './scripts.generated.ts';
import type { RedisScript } from './scripts.ts';

/** The operations that write records. */
export type RedisOperations = Readonly<
  Record<'acquire' | 'forceRelease' | 'release' | 'renew' | 'transfer', RedisScript>
>;

const operations: RedisOperations = { acquire, forceRelease, release, renew, transfer };

/** How long a record is kept at least, and from a grant on whose lease is short. Nothing else in the sources is these numbers. */
const { RECORD_TTL_MS: builtInTtlMs, SHORT_RECORD_TTL_MS: builtInShortTtlMs } = settings;

const numbers = new RegExp(`${builtInTtlMs}|${builtInShortTtlMs}`, 'g');

/**
 * The operations of a store that keeps records for another time. The time is a constant in their sources, so that the
 * default costs no call an argument.
 */
export function operationsFor(recordTtlMs: number = builtInTtlMs): RedisOperations {
  if (recordTtlMs === builtInTtlMs) return operations;
  const shortTtlMs = recordTtlMs + builtInShortTtlMs - builtInTtlMs;
  const changed = ({ name, source: before }: RedisScript): RedisScript => {
    // In one go: the new value of one may be the other.
    const source = before.replaceAll(numbers, (found) =>
      String(found === String(builtInTtlMs) ? recordTtlMs : shortTtlMs),
    );
    return { name, source, sha1: createHash('sha1').update(source).digest('hex') };
  };
  return {
    acquire: changed(acquire),
    forceRelease: changed(forceRelease),
    release: changed(release),
    renew: changed(renew),
    transfer: changed(transfer),
  };
}
