import { wholeMs } from '../base/clock.ts';
import type { LockStoreError } from '../model/errors/failures.ts';
import type { LockError } from '../model/errors/lock-error.ts';
import { LocksClosedError } from '../model/errors/refusals.ts';
import { checkOptions, milliseconds, type Rules } from '../model/validate.ts';
import type { Runtime } from './runtime.ts';

/** The options of `locks.ping`. */
export interface PingOptions {
  /** How long the store may take, in milliseconds. Default `storeTimeoutMs`. */
  readonly timeoutMs?: number | undefined;
}

/** The result of `locks.ping`, which resolves also if the store failed. */
export type PingResult =
  | {
      /** The store replied. */
      readonly ok: true;
      /** How long it took, in whole milliseconds. */
      readonly latencyMs: number;
    }
  | {
      readonly ok: false;
      readonly latencyMs: number;
      /** A `LockStoreError`, with the client's own error as its `cause`; or a `LocksClosedError`, of a `Locks` that is closing. */
      readonly error: LockError;
    };

const rules: Rules<PingOptions> = { timeoutMs: milliseconds() };

/** Asks the store once: a read of a lock that nobody can acquire. Rejects with `LockConfigError` for bad options. */
export async function pingStore({ client, clock, acquires }: Runtime, options?: PingOptions): Promise<PingResult> {
  const { timeoutMs } = checkOptions(options, rules, 'ping');
  const start = clock.now();
  const result = (error?: LockError): PingResult => {
    const latencyMs = wholeMs(clock.now(), start);
    return error === undefined ? { ok: true, latencyMs } : { ok: false, latencyMs, error };
  };
  if (acquires.isClosed) return result(new LocksClosedError());
  try {
    await client.ping(timeoutMs);
    return result();
  } catch (error) {
    return result(error as LockStoreError);
  }
}
