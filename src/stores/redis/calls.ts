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
} from '../../core/model/store.ts';
import type { CallHistory } from './call-history.ts';
import type { ShardedSubscriptions } from './cluster/sharded-subscriptions.ts';
import type { RedisDriver } from './drivers/driver.ts';
import { connected } from './errors.ts';
import { modeOf, readAcquire, readGrant, readRelease, readRenew, readTransfer } from './replies.ts';
import { acquire, release, renew, transfer } from './scripts.generated.ts';
import type { Item, RedisScripts } from './scripts.ts';

/** The calls that make, change and end holds. `ConfirmedCalls` makes them with confirmations of replicas. */
export interface HoldCalls {
  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply>;
  renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply>;
  release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply>;
  transfer(from: HoldRequest, to: HoldRequest, terms: TransferTerms): Promise<TransferReply>;
  /** Wraps the listener of a process, to change its messages. */
  wrapListener?(listener: StoreListener): StoreListener;
  /** Keeps its separate connections, if it has any, from the first subscription on. */
  open?(): void;
  /** Closes them, with the last subscription. */
  close?(): void;
}

/** The common settings of the calls of a store. */
export interface CallSettings {
  readonly driver: RedisDriver;
  readonly history: CallHistory;
  readonly shardedSubscriptions: ShardedSubscriptions | undefined;
  readonly prefix: string;
  /** Before the name of each process in the name of its channel. */
  readonly channels: string;
  /** How long the last fence of a key is kept after a lease. */
  readonly recordTtlMs: number;
}

/** Makes each call with one script. */
export class RedisCalls implements HoldCalls {
  readonly #settings: CallSettings;
  readonly #scripts: RedisScripts;

  constructor(settings: CallSettings, scripts: RedisScripts) {
    this.#settings = settings;
    this.#scripts = scripts;
  }

  /** The same calls by other scripts, on a separate connection. */
  by(scripts: RedisScripts): RedisCalls {
    return new RedisCalls(this.#settings, scripts);
  }

  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const { driver, history, shardedSubscriptions, prefix, channels, recordTtlMs } = this.#settings;
    if (!this.#scripts.isConnected) return connected(driver, 'acquire').then(() => this.acquire(request, terms));
    const { holdId, owner, process, claimMs, priority } = request;
    const { leaseMs, queue, maxWaiters, livenessMs, minFence, newest } = terms;
    const rest = `${queue ? 1 : 0} ${claimMs} ${priority} ${maxWaiters} ${livenessMs} ${channels}`;
    const keys = keysOf(prefix, request.id);
    const args: Item[] = [process, owner, holdId, modeOf(request), leaseMs, recordTtlMs, rest];
    if (minFence !== undefined || newest !== undefined) args.push(minFence ?? 0);
    if (newest !== undefined) args.push(newest.holdId);
    const onReply = history.acquireSent(request);
    const read = (reply: unknown): AcquireReply => {
      const mayArriveLater = onReply();
      const result = Array.isArray(reply) ? readAcquire(holdId, reply) : readGrant(holdId, Number(reply), leaseMs);
      // Twice as long as the process keeps its places in the queue without a poll.
      if (result.status === 'queued') shardedSubscriptions?.listen(keys[0], process, 2 * livenessMs);
      return Object.assign(result, { mayArriveLater });
    };
    return this.#scripts.run(acquire, keys, args, read, onReply);
  }

  renew(request: HoldRequest, { leaseMs, fence }: RenewTerms): Promise<RenewReply> {
    const { prefix, recordTtlMs } = this.#settings;
    const keys = keysOf(prefix, request.id).slice(0, 3);
    return this.#scripts.run(renew, keys, [request.holdId, leaseMs, fence, recordTtlMs], readRenew);
  }

  release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    const { driver, history, prefix, channels, recordTtlMs } = this.#settings;
    if (!this.#scripts.isConnected) return connected(driver, 'release').then(() => this.release(request, terms));
    const keys = keysOf(prefix, request.id);
    const rememberMs = history.mayAcquireArrive(request) ? terms.tombstoneMs : 0;
    const rest = `${request.process} ${request.owner} ${recordTtlMs} ${channels}`;
    const args: Item[] = [request.holdId, rememberMs, rest];
    if (terms.announce) args.push(request.id);
    const epoch = driver.connectionEpoch();
    const read = (reply: unknown): ReleaseReply => {
      const released = readRelease(reply);
      // After a reconnect, the client library sends a call again.
      return driver.isSameEpoch(epoch) ? released : { ...released, mayHaveArrivedBefore: true };
    };
    return this.#scripts.run(release, keys, args, read);
  }

  transfer(from: HoldRequest, to: HoldRequest, { leaseMs, tombstoneMs }: TransferTerms): Promise<TransferReply> {
    const { prefix, channels, recordTtlMs } = this.#settings;
    const keys = keysOf(prefix, to.id);
    const hold = [to.process, to.owner, to.holdId, modeOf(to)];
    const args = [...hold, leaseMs, recordTtlMs, channels, from.holdId, tombstoneMs];
    return this.#scripts.run(transfer, keys, args, (reply) => readTransfer(to.holdId, reply));
  }
}

/** The keys of a lock, as lua/parts/lock.lua names them. The hash tag keeps them in one slot: an encoded name has no braces. */
export function keysOf(prefix: string, id: string): [lock: string, ...rest: string[]] {
  const tag = `${prefix}{${id}}`;
  return [`${tag}:lock`, `${tag}:holds`, `${tag}:leases`, `${tag}:queue`, `${tag}:waiters`, `${tag}:tombstones`];
}
