import type { ServerWarning } from '../../model/store.ts';

/**
 * What a `CasStore` needs of a server: one text a key, and four operations on it. Each must be atomic on the server, and
 * must see all that was written before it: never a replica.
 *
 * An operation that fails rejects with what its client rejected with. A write that rejects may have been done all the
 * same, unless it rejects with a `LockStoreError` whose `outcome` is `'not-applied'`. No operation may be done once more
 * later, on a new connection for example, unless it still compares what is there then.
 */
export interface CasAdapter {
  /** The text, and the server's time. */
  read(key: string): Promise<CasReading>;
  /** Writes a text where there is none; answers whether it did. */
  create(key: string, value: string, ttlMs: number): Promise<boolean>;
  /** Writes a text in place of `old`; answers false, and changes nothing, where the text is any other or none. */
  replace(key: string, old: string, value: string, ttlMs: number): Promise<boolean>;
  /** Removes the text if it is `old`; answers false, and changes nothing, where it is any other or none. */
  remove(key: string, old: string): Promise<boolean>;
  /** How the server is set up in a way that locks suffer from, if it is. Asked with a process's first acquire. */
  warning?(): Promise<ServerWarning | undefined>;
}

/** What is under a key, and when. */
export interface CasReading {
  /** Undefined where there is none. A text whose `ttlMs` is over may be there still: the store judges it by its own time. */
  readonly value: string | undefined;
  /**
   * The server's clock, in whole microseconds since 1970, not before the call was made. It decides when leases end: of a
   * server that has no clock it is the caller's, and then the callers' clocks must agree.
   */
  readonly nowUs: number;
}
