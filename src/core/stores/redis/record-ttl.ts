import { createHash } from 'node:crypto';
import { acquire, forceRelease, release, renew, transfer } from './scripts.generated.ts';
import type { RedisScript } from './scripts.ts';

/** The operations that write records. */
export type RedisOperations = Readonly<
  Record<'acquire' | 'forceRelease' | 'release' | 'renew' | 'transfer', RedisScript>
>;

const operations: RedisOperations = { acquire, forceRelease, release, renew, transfer };

/** As lua/parts/layout.lua has them: how long a record is kept at least, and from a grant on whose lease is short. */
const builtIn = { ttlMs: 3_600_000, shortTtlMs: 3_700_000 };

/**
 * The operations of a store that keeps records for another time. The time is a constant in their sources, so that the
 * default costs no call an argument.
 */
export function operationsFor(recordTtlMs: number = builtIn.ttlMs): RedisOperations {
  if (recordTtlMs === builtIn.ttlMs) return operations;
  const shortTtlMs = recordTtlMs + builtIn.shortTtlMs - builtIn.ttlMs;
  const changed = ({ name, source: before }: RedisScript): RedisScript => {
    const source = before
      .replaceAll(String(builtIn.ttlMs), String(recordTtlMs))
      .replaceAll(String(builtIn.shortTtlMs), String(shortTtlMs));
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
