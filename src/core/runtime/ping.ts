import { wholeMs } from '../base/clock.ts';
import { type LockError, type LockStoreError, LocksClosedError } from '../model/errors.ts';
import { pingName } from '../model/key.ts';
import type { PingOptions, PingResult } from '../model/types.ts';
import { checkOptions, milliseconds, type Rules } from '../model/validate.ts';
import type { Runtime } from './runtime.ts';

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
    await client.ping(pingName, timeoutMs);
    return result();
  } catch (error) {
    return result(error as LockStoreError);
  }
}
