import { type Instant, lastedMs } from '../base/clock.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { hasCode } from '../model/error-code.ts';
import { LockTimeoutError } from '../model/errors.ts';
import type { LockName } from '../model/key.ts';
import type { AcquireOptions } from '../model/types.ts';
import type { ScopedHold } from '../scope/hold.ts';
import type { Scope } from '../scope/scope.ts';
import { acquire, interruptible } from './acquire.ts';

/** Who asks: a guard gives up when its client leaves. */
type Caller = 'code' | 'guard';

/** The last store calls of a batch may take so long beyond its time: who came to the last key in time may have the rest. */
const lastAskMs = 100;

/**
 * Acquires several keys for a scope, all or none, in one order whatever the caller's. It tries all of them in one turn,
 * so that free keys cost one round trip together. It keeps what comes before the first that is not free, gives back what
 * comes behind it, stands in the queue of that one alone, and then tries the rest again. Who waits so holds nothing that
 * comes later in the order: batches never wait for each other in a circle.
 */
export class Batch {
  /** In the order of the acquires. */
  readonly names: readonly LockName[];
  readonly #scope: Scope;
  readonly #options: AcquireOptions;
  readonly #caller: Caller;
  readonly #waitMs: number;
  readonly #startedAt: Instant;
  /** Of the first keys in the order. */
  readonly #holds: ScopedHold[] = [];
  #returned: Promise<unknown> = Promise.resolve();

  /** The names are different ones, and the options were checked. */
  constructor(scope: Scope, names: readonly LockName[], options: AcquireOptions, caller: Caller) {
    const { settings, clock } = scope.runtime;
    this.names = [...names].sort((a, b) => (a.id < b.id ? -1 : 1));
    this.#scope = scope;
    this.#options = options;
    this.#caller = caller;
    this.#waitMs = options.waitMs ?? settings.waitMs;
    this.#startedAt = clock.now();
  }

  /**
   * Resolves with the holds in the order of their keys, none of them lost. Rejects with what the first key in the order
   * that can't be had is refused with; what it had is on its way back then.
   */
  async acquire(): Promise<readonly ScopedHold[]> {
    try {
      while (this.#heldCount() < this.names.length) await this.#advance();
    } catch (error) {
      void this.giveBack();
      throw hasCode(error, 'ERR_LOCK_TIMEOUT') ? this.#timeout(error) : error;
    }
    return this.#holds;
  }

  /** Gives back all that it has; resolves when every release was answered, or has failed. */
  async giveBack(): Promise<void> {
    this.#return(this.#holds.splice(0));
    await this.#returned;
  }

  /** How many keys of the first ones are held. Those from one on that was lost meanwhile must be had again. */
  #heldCount(): number {
    const lost = this.#holds.findIndex((hold) => !hold.isHeld());
    if (lost < 0) return this.#holds.length;
    // While there is time, it is acquired again: nobody has worked under it yet. Then its loss is told, as to who would never
    // have all of them at once.
    if (this.#leftMs() === 0) {
      this.#holds[lost]?.assertOpen();
      this.#holds[lost]?.assertHeld();
    }
    this.#return(this.#holds.splice(lost));
    return lost;
  }

  async #advance(): Promise<void> {
    // The last one is waited for in the first place: nothing would be had from a try.
    if (this.names.length - this.#holds.length > 1) await this.#tryRest();
    const next = this.names[this.#holds.length];
    if (next === undefined) return;
    const options = { ...this.#options, waitMs: this.#leftMs() };
    this.#holds.push(await acquire(this.#scope, next, options, this.#caller, this.#askMs()));
  }

  /** What comes first in the order decides, as if they were acquired one by one. */
  async #tryRest(): Promise<void> {
    const results = await Promise.allSettled(this.#tries(this.names.slice(this.#holds.length)));
    const behind: ScopedHold[] = [];
    let gap: (typeof results)[number] | undefined;
    for (const result of results) {
      const hold = result.status === 'fulfilled' ? result.value : undefined;
      if (hold === undefined) gap ??= result;
      else if (gap === undefined) this.#holds.push(hold);
      else behind.push(hold);
    }
    this.#return(behind);
    if (gap?.status === 'rejected') throw gap.reason;
  }

  #tries(names: readonly LockName[]): MaybePromise<ScopedHold | undefined>[] {
    const tries: MaybePromise<ScopedHold | undefined>[] = [];
    const askMs = this.#askMs();
    try {
      for (const name of names) {
        // `acquire` does not look whether a guard's client has left where it is to try.
        interruptible(this.#scope, name.key, this.#options, this.#caller);
        tries.push(acquire(this.#scope, name, this.#options, 'try', askMs));
      }
    } catch (error) {
      tries.push(Promise.reject(error));
    }
    return tries;
  }

  /** Newest first. A release that fails is told in the events, and tried again. */
  #return(holds: readonly ScopedHold[]): void {
    if (holds.length === 0) return;
    const releases = [...holds].reverse().map((hold) => hold.release());
    this.#returned = Promise.allSettled([this.#returned, ...releases]);
  }

  #leftMs(): number {
    return Math.max(0, this.#waitMs - this.#waitedMs());
  }

  /** Calls that follow each other late must not add up: a store that fell silent is told of in time. */
  #askMs(): number {
    const { storeTimeoutMs } = this.#scope.runtime.settings;
    return Math.max(1, Math.max(this.#waitMs, storeTimeoutMs) + lastAskMs - this.#waitedMs());
  }

  #waitedMs(): number {
    return lastedMs(this.#scope.runtime.clock.now(), this.#startedAt);
  }

  /** Of the batch's wait, of which the last key's was a part. */
  #timeout({ key, retryAfterMs }: LockTimeoutError): LockTimeoutError {
    const waitedMs = this.#waitMs === 0 ? 0 : this.#waitedMs();
    return new LockTimeoutError({ key, waitedMs, retryAfterMs });
  }
}
