import { elapsedMs, systemClock } from '../../../core/base/clock.ts';
import { LockStoreError } from '../../../core/model/errors/failures.ts';
import type {
  AcquireReply,
  AcquireTerms,
  HoldRequest,
  ReleaseReply,
  ReleaseTerms,
  RenewReply,
  RenewTerms,
  StoreListener,
  TransferReply,
  TransferTerms,
  WaiterGrant,
} from '../../../core/model/store.ts';
import { type HoldCalls, keysOf, type RedisCalls } from '../calls.ts';
import type { RedisConnection, RedisDriver } from '../drivers/driver.ts';
import { storeError } from '../errors.ts';
import { RedisScripts } from '../scripts.ts';
import { RedisPrimaries } from './primaries.ts';

/** How long the replicas may take to confirm, and a call to get a connection. Less than `storeTimeoutMs` by default. */
const confirmMs = 1_000;

/**
 * Calls that count only when replicas have their writes. WAIT is about the writes on its own connection: it is sent on the
 * connection that wrote, which serves no other call meanwhile and never reconnects. A grant of another call is therefore only a
 * wake-up: the waiter asks for it, and that call confirms it.
 */
export class ConfirmedCalls implements HoldCalls {
  readonly #driver: RedisDriver;
  readonly #prefix: string;
  readonly #calls: RedisCalls;
  readonly #count: number;
  readonly #connections: RedisPrimaries;

  constructor(driver: RedisDriver, prefix: string, calls: RedisCalls, count: number) {
    this.#driver = driver;
    this.#prefix = prefix;
    this.#calls = calls;
    this.#count = count;
    this.#connections = new RedisPrimaries(driver);
  }

  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const acquire = async (calls: RedisCalls): Promise<AcquireReply> => {
      const reply = await calls.acquire(request, terms);
      const claims = reply.claims.map(wakeUp);
      if (reply.status !== 'granted') return { ...reply, claims };
      // An earlier call may have written the grant on another connection: write it again on this one.
      const { fence, isClaim } = reply.grant;
      const leaseMs = isClaim ? request.claimMs : terms.leaseMs;
      const renewed = await calls.renew(request, { fence, leaseMs }).catch(({ message, cause }) => {
        throw new LockStoreError(message, { cause, outcome: 'unknown' });
      });
      if (renewed.status === 'lost')
        throw new LockStoreError('The lock store granted a lease that had expired before the replicas confirmed it', {
          outcome: 'unknown',
        });
      return { ...reply, claims, grant: { ...reply.grant, endMs: renewed.endMs }, nowMs: renewed.nowMs };
    };
    return this.#confirmed('acquire', request.id, acquire, ({ status }) => status === 'granted');
  }

  renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    const renew = (calls: RedisCalls): Promise<RenewReply> => calls.renew(request, terms);
    return this.#confirmed('renew', request.id, renew, ({ status }) => status === 'renewed');
  }

  transfer(from: HoldRequest, to: HoldRequest, terms: TransferTerms): Promise<TransferReply> {
    const transfer = (calls: RedisCalls): Promise<TransferReply> => calls.transfer(from, to, terms);
    return this.#confirmed('transfer', to.id, transfer, ({ status }) => status === 'granted');
  }

  async release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    const reply = await this.#calls.release(request, terms);
    return { ...reply, claims: reply.claims.map(wakeUp) };
  }

  wrapListener(listener: StoreListener): StoreListener {
    return (message) =>
      listener(message.kind === 'granted' ? { kind: 'granted', grant: wakeUp(message.grant) } : message);
  }

  /** Keeps idle connections for some seconds again, after a `close`. */
  open(): void {
    this.#connections.open();
  }

  /** From now on each connection is closed after its call. */
  close(): void {
    this.#connections.close();
  }

  /**
   * Makes `calls` about a lock on one connection. WAIT follows if `counts` returns true for their reply; then the last call must
   * have written something. Rejects with a `LockStoreError` if too few replicas confirm in time; the writes stay. If no connection
   * is free in time, nothing is sent, since it might arrive after the caller's attempts to undo it.
   */
  async #confirmed<T>(
    operation: string,
    id: string,
    calls: (calls: RedisCalls) => Promise<T>,
    counts: (reply: T) => boolean,
  ): Promise<T> {
    const startedAt = systemClock.now();
    const task = async (connection: RedisConnection): Promise<readonly [T, number] | undefined> => {
      if (elapsedMs(systemClock.now(), startedAt) > confirmMs) return undefined;
      const reply = await calls(this.#calls.by(new RedisScripts(this.#driver, connection)));
      // As if all replicas had confirmed it.
      if (!counts(reply)) return [reply, this.#count];
      const confirmed = connection.send(['wait', this.#count, confirmMs]).catch((cause: unknown) => {
        // The write was made, whatever the reply to WAIT.
        throw storeError(this.#driver, operation, cause, false);
      });
      return [reply, Number(await confirmed)];
    };
    const [lock] = keysOf(this.#prefix, id);
    const result = await this.#connections.run(lock, task).catch((error: unknown) => {
      throw error instanceof LockStoreError ? error : storeError(this.#driver, operation, error);
    });
    if (result === undefined) {
      const message = `The lock store's replicas are too slow: ${operation} was not sent`;
      throw new LockStoreError(message, { outcome: 'not-applied' });
    }
    const [reply, count] = result;
    if (count >= this.#count) return reply;
    const message = `Expected ${this.#count} of the lock store's replicas to confirm ${operation}, but ${count} did`;
    throw new LockStoreError(message, { outcome: 'unknown' });
  }
}

/** Removes the proof that a grant is live, which makes the waiter ask the store before it uses the grant. */
function wakeUp(grant: WaiterGrant): WaiterGrant {
  return { ...grant, endMs: 0 };
}
