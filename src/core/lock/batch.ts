import type { CallSite } from '../base/call-site.ts';
import { type Instant, lastedMs } from '../base/clock.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { inBackground } from '../base/safely.ts';
import { setCallSite } from '../model/errors/at-call.ts';
import { hasCode } from '../model/errors/by-code.ts';
import { LockTimeoutError } from '../model/errors/refusals.ts';
import type { LockName } from '../model/key.ts';
import type { AcquireOptions } from '../model/types.ts';
import type { Branch } from '../scope/scope.ts';
import { type AcquireDetails, acquire, type Caller, tryAcquire } from './acquire.ts';
import type { ScopedHold } from './hold.ts';

/** The last store calls of a batch may end this long after its time: it may reach its last keys just in time. */
const lastCallMs = 100;

/**
 * Acquires several keys for a scope, all or none, in one canonical order. It tries all of them at once, so that free keys
 * cost one round trip together. It keeps the keys before the first that is not free, releases those behind it, waits in the
 * queue of that one alone, and then tries the rest again. While it waits for a key, it holds no later key: batches never wait for
 * each other in a cycle.
 */
export class Batch {
  /** In the order of the acquires. */
  readonly names: readonly LockName[];
  readonly #branch: Branch;
  readonly #options: AcquireOptions;
  readonly #caller: Caller;
  readonly #waitMs: number;
  readonly #startedAt: Instant;
  readonly #callSite: CallSite | undefined;
  /** The holds on the first keys in the order. */
  readonly #holds: ScopedHold[] = [];
  #releasing: Promise<unknown> = Promise.resolve();

  /** The names are distinct, and the options are checked already. */
  constructor(branch: Branch, names: readonly LockName[], options: AcquireOptions, caller: Caller) {
    const { settings, clock, callSites } = branch.scope.runtime;
    this.names = [...names].sort((a, b) => (a.id < b.id ? -1 : 1));
    this.#branch = branch;
    this.#options = options;
    this.#caller = caller;
    this.#waitMs = options.waitMs ?? settings.waitMs;
    this.#startedAt = clock.now();
    this.#callSite = caller === 'code' ? callSites.take(this.#startedAt.monoMs) : undefined;
  }

  /**
   * Resolves with the holds in the order of their keys, none of them lost. Rejects with the error of the first key that fails;
   * the others are then released in the background.
   */
  async acquire(): Promise<readonly ScopedHold[]> {
    try {
      do {
        await this.#advance();
        this.#dropLost();
      } while (this.#holds.length < this.names.length);
    } catch (error) {
      inBackground(this.release());
      throw hasCode(error, 'ERR_LOCK_TIMEOUT') ? this.#timeout(error) : error;
    }
    return this.#holds;
  }

  /** Releases all its holds. Resolves when every release has a reply or has failed. */
  async release(): Promise<void> {
    this.#releaseHolds(this.#holds.splice(0));
    await this.#releasing;
  }

  /** Releases the holds from the first lost one on: their keys must be acquired again. */
  #dropLost(): void {
    const lost = this.#holds.findIndex((hold) => !hold.isHeld());
    if (lost < 0) return;
    // While there is time, it is acquired again, since nothing was done under it. After that, its loss is the error.
    if (this.#leftMs() === 0) {
      this.#holds[lost]?.assertOpen();
      this.#holds[lost]?.assertHeld();
    }
    this.#releaseHolds(this.#holds.splice(lost));
  }

  async #advance(): Promise<void> {
    // Wait for the last key at once: a try would gain nothing.
    if (this.names.length - this.#holds.length > 1) await this.#tryRest();
    const next = this.names[this.#holds.length];
    if (next === undefined) return;
    const options = { ...this.#options, waitMs: this.#leftMs() };
    this.#holds.push(await acquire(this.#branch, next, options, this.#caller, this.#details()));
  }

  /** The first result in the order decides, as if they were acquired one by one. */
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
    this.#releaseHolds(behind);
    if (gap?.status === 'rejected') throw gap.reason;
  }

  #tries(names: readonly LockName[]): MaybePromise<ScopedHold | undefined>[] {
    const tries: MaybePromise<ScopedHold | undefined>[] = [];
    const details = { ...this.#details(), isProbe: true };
    try {
      for (const name of names) {
        tries.push(tryAcquire(this.#branch, name, this.#options, this.#caller, details));
      }
    } catch (error) {
      tries.push(Promise.reject(error));
    }
    return tries;
  }

  /** Newest first. A release that fails emits an event and is tried again. */
  #releaseHolds(holds: readonly ScopedHold[]): void {
    if (holds.length === 0) return;
    const releases = [...holds].reverse().map((hold) => hold.release());
    this.#releasing = Promise.allSettled([this.#releasing, ...releases]);
  }

  #leftMs(): number {
    return Math.max(0, this.#waitMs - this.#waitedMs());
  }

  /** The deadlines of consecutive calls must not add up. */
  #details(): AcquireDetails {
    const { storeTimeoutMs } = this.#branch.scope.runtime.settings;
    const firstCallTimeoutMs = Math.max(0, Math.max(this.#waitMs, storeTimeoutMs) + lastCallMs - this.#waitedMs());
    return { as: 'batch', firstCallTimeoutMs, callSite: this.#callSite };
  }

  #waitedMs(): number {
    return lastedMs(this.#branch.scope.runtime.clock.now(), this.#startedAt);
  }

  /** The error with the whole batch's wait, of which the last key's was a part. */
  #timeout({ key, category, retryAfterMs, holder, heldBy }: LockTimeoutError): LockTimeoutError {
    const waitedMs = this.#waitMs === 0 ? 0 : this.#waitedMs();
    const error = new LockTimeoutError({ key, category, waitedMs, retryAfterMs, holder, heldBy });
    setCallSite(error, this.#callSite);
    return error;
  }
}
