import type { ServerWarning } from '../../core/model/store.ts';

/**
 * What a `CasStore` needs from a server: one text for each key, and four operations on it. Each operation must be atomic on
 * the server, and must see every earlier write. It must not read from a replica.
 *
 * If an operation fails, it rejects with the error of its client. The store then assumes that a write may have been applied,
 * unless the error is a `LockStoreError` whose `outcome` is `'not-applied'`. A client may repeat an operation later, for
 * example on a new connection, only if the repeat compares the text again.
 */
export interface CasAdapter {
  /** Returns the text and the server's time. */
  read(key: string): Promise<CasReading>;
  /** Writes the text if the key has none. Returns whether it did. */
  create(key: string, value: string, ttlMs: number): Promise<boolean>;
  /** Replaces `old` by another text. Returns false, and changes nothing, if the key has another text or none. */
  replace(key: string, old: string, value: string, ttlMs: number): Promise<boolean>;
  /** Removes the text `old`. Returns false, and changes nothing, if the key has another text or none. */
  remove(key: string, old: string): Promise<boolean>;
  /** Returns a warning if the server's settings may lose locks. Called once, when a process subscribes. */
  warning?(): Promise<ServerWarning | undefined>;
}

/** The text of a key, and when it was read. */
export interface CasReading {
  /** Undefined if there is none. A text may be returned after its `ttlMs`: the store checks the time in the text itself. */
  readonly value: string | undefined;
  /**
   * The server's clock, in whole microseconds since 1970, read after the call was made. It decides when leases end. If the
   * server has no clock, this is the caller's clock. Then there may be two owners if the clocks of two callers differ by more
   * than 1 % of a lease and 2 ms.
   */
  readonly nowUs: number;
}
