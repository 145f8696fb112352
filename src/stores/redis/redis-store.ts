import type { Link } from '../../core/base/link.ts';
import { inBackground } from '../../core/base/safely.ts';
import { LockConfigError, LockStoreError } from '../../core/model/errors.ts';
import type {
  AcquireReply,
  AcquireTerms,
  EdgeStore,
  HoldRequest,
  InspectReply,
  ListReply,
  ListRequest,
  LockStore,
  ReleaseReply,
  ReleaseTerms,
  RenewReply,
  RenewTerms,
  StoreCapabilities,
  StoreListener,
  SubscribeOptions,
  TransferReply,
  TransferTerms,
  Unsubscribe,
} from '../../core/model/store.ts';
import type { HoldMode } from '../../core/model/types.ts';
import { checkOptions, milliseconds, text, wholeNumber } from '../../core/model/validate.ts';
import { CallHistory } from './call-history.ts';
import { RedisChannel } from './channel.ts';
import { scanLocks } from './cluster/listing.ts';
import { RedisReplicas, wakeUp, wakeUpsOnly } from './cluster/replicas.ts';
import { ShardedSubscriptions } from './cluster/sharded-subscriptions.ts';
import type { RedisDriver } from './drivers/driver.ts';
import { driverOf, type RedisClient, redisClient } from './drivers/driver-of.ts';
import { RedisEdges } from './edges.ts';
import { connected, isOtherFormat } from './errors.ts';
import { operationsFor, type RedisOperations } from './record-ttl.ts';
import { readAcquire, readGrant, readInspect, readRelease, readRenew, readTransfer } from './replies.ts';
import { warnOfRights } from './rights.ts';
import { inspect } from './scripts.generated.ts';
import { type Item, RedisScripts } from './scripts.ts';
import { ServerUptime, warnOfServer } from './server-info.ts';

/** Which server keeps the locks, and under which names. */
export interface RedisStoreOptions {
  /** The application's client, of ioredis, iovalkey or node-redis. It is neither changed nor closed. */
  readonly client: RedisClient;
  /** Before every key and channel; without braces and white space. Default `reenlock:`. */
  readonly prefix?: string | undefined;
  /**
   * How many replicas must have a grant or a renewal before it counts. This adds two round trips to a grant and one to a
   * renewal, on connections of the store's own. If replicas are missing, nothing is granted or renewed. Default 0.
   */
  readonly waitReplicas?: number | undefined;
  /**
   * How long the last fence of a key is remembered after its last use, in milliseconds, and at most 100 000 longer: as long as
   * that, fences rise even if the server's clock is set back. Use the same in all processes. 60 000 at least, default
   * 3 600 000.
   */
  readonly recordTtlMs?: number | undefined;
}

const capabilities = {
  queue: true,
  handOff: true,
  modes: true,
  permits: true,
  shared: true,
  minFence: true,
  edges: true,
  transfer: true,
};

/**
 * Keeps locks on Redis, for any number of processes. Every operation is one script call on the primary, in a cluster on
 * the primary of the lock's slot. Grants come through one subscription for each process, in a cluster also one for each
 * lock. For these the store opens connections beside the client's, and closes them when the last `Locks` on it is closed.
 * Throws `LockConfigError` for bad options. Its calls reject with `LockStoreError`.
 */
export class RedisStore implements LockStore {
  readonly capabilities: StoreCapabilities;
  readonly link: Link;
  readonly edges: EdgeStore;
  readonly #driver: RedisDriver;
  readonly #scripts: RedisScripts;
  readonly #operations: RedisOperations;
  readonly #history: CallHistory;
  readonly #prefix: string;
  readonly #channels: string;
  readonly #channel: RedisChannel;
  readonly #uptime: ServerUptime;
  readonly #shardedSubscriptions: ShardedSubscriptions | undefined;
  readonly #replicas: RedisReplicas | undefined;

  constructor(options: RedisStoreOptions) {
    const given = checkOptions(options, rules, 'RedisStore', 'client');
    const { client, prefix = 'reenlock:', waitReplicas = 0, recordTtlMs } = given;
    const driver = driverOf(client);
    this.#driver = driver;
    this.link = driver.link;
    this.#scripts = new RedisScripts(driver);
    this.#operations = operationsFor(recordTtlMs);
    this.#history = new CallHistory(driver);
    this.#prefix = prefix;
    if (/^[^{]*\{\}/.test(driver.keyPrefix)) {
      throw new LockConfigError(
        'Expected the key prefix of the client to be free of `{}`, which undoes the hash tag of every key',
      );
    }
    // A server of a cluster knows only its own subscribers: it cannot tell that a process is unreachable.
    this.#shardedSubscriptions = driver.cluster && new ShardedSubscriptions(driver, driver.cluster);
    this.capabilities = { ...capabilities, reachability: this.#shardedSubscriptions === undefined };
    // No prefix has braces: they tell the scripts that this is a cluster.
    this.#channels = `${this.#prefix}${this.#shardedSubscriptions === undefined ? 'grants:' : '{grants}:'}`;
    this.#channel = new RedisChannel(driver, this.#channels);
    this.#uptime = new ServerUptime(driver);
    this.edges = new RedisEdges(this.#scripts, this.#prefix, (request) => [
      ...this.#keys(request.id),
      `${callerIds(request)} ${waiterTerms(request)}`,
    ]);
    this.#replicas = waitReplicas === 0 ? undefined : new RedisReplicas(driver, waitReplicas);
  }

  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    if (!this.#scripts.isConnected) return connected(this.#driver, 'acquire').then(() => this.acquire(request, terms));
    let onAnswered = this.#history.acquireSent(request);
    if (this.#replicas === undefined) return this.#acquire(this.#scripts, request, terms, onAnswered);
    let isRepeated = false;
    const calls = async (scripts: RedisScripts): Promise<AcquireReply> => {
      if (isRepeated) onAnswered = this.#history.acquireSent(request);
      isRepeated = true;
      const reply = await this.#acquire(scripts, request, terms, onAnswered);
      const claims = reply.claims.map(wakeUp);
      if (reply.status !== 'granted') return { ...reply, claims };
      // An earlier call may have written the grant on another connection: write it again on this one.
      const { fence, isClaim } = reply.grant;
      const leaseMs = isClaim ? request.claimMs : terms.leaseMs;
      const renewed = await this.#renew(scripts, request, { fence, leaseMs }).catch(({ message, cause }) => {
        throw new LockStoreError(message, { cause, outcome: 'unknown' });
      });
      if (renewed.status === 'lost')
        throw new LockStoreError('The lock store granted a lease that had ended before the replicas confirmed it', {
          outcome: 'unknown',
        });
      return { ...reply, claims, grant: { ...reply.grant, endMs: renewed.endMs }, nowMs: renewed.nowMs };
    };
    const isGrant = ({ status }: AcquireReply): boolean => status === 'granted';
    return this.#replicas.confirmed('acquire', this.#record(request.id), calls, isGrant, () => onAnswered());
  }

  renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    if (this.#replicas === undefined) return this.#renew(this.#scripts, request, terms);
    const call = (scripts: RedisScripts): Promise<RenewReply> => this.#renew(scripts, request, terms);
    return this.#replicas.confirmed('renew', this.#record(request.id), call, ({ status }) => status === 'renewed');
  }

  release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    if (!this.#scripts.isConnected) return connected(this.#driver, 'release').then(() => this.release(request, terms));
    const flag = this.#history.releaseFlag(request, terms.tombstoneMs);
    const args = this.#args(request, terms.tombstoneMs, flag);
    if (terms.announce) args.push(request.id);
    const read = (reply: unknown): ReleaseReply => {
      this.#history.releaseAnswered(request);
      const released = readRelease(reply);
      return this.#replicas === undefined ? released : { ...released, claims: released.claims.map(wakeUp) };
    };
    const pending = this.#scripts.run(this.#operations.release, args, read);
    this.#history.releaseSent(request);
    return pending;
  }

  transfer(from: HoldRequest, to: HoldRequest, { leaseMs, tombstoneMs }: TransferTerms): Promise<TransferReply> {
    const args = [...this.#args(to, leaseMs, 2), callerIds(from), tombstoneMs];
    const call = (scripts: RedisScripts): Promise<TransferReply> =>
      scripts.run(this.#operations.transfer, args, (reply) => readTransfer(to.holdId, reply));
    if (this.#replicas === undefined) return call(this.#scripts);
    return this.#replicas.confirmed('transfer', this.#record(to.id), call, ({ status }) => status === 'granted');
  }

  inspect(id: string): Promise<InspectReply> {
    return this.#scripts.run(inspect, this.#keys(id), readInspect);
  }

  forceRelease(id: string, fence: number): Promise<boolean> {
    // As `#args`, for no caller.
    const args = [...this.#keys(id), '- - -', `${fence} 0 w 0 0 0 0 ${this.#channels}`];
    return this.#scripts.run(this.#operations.forceRelease, args, (reply) => Number(reply) === 1);
  }

  async list(request: ListRequest): Promise<ListReply> {
    const { ids, cursor } = await scanLocks(this.#driver, this.#prefix, request);
    const unreadable: string[] = [];
    const read = async (id: string): Promise<ListReply['locks']> => {
      try {
        const reply = await this.inspect(id);
        // A record outlives its holds and waiters.
        return reply.holds.length + reply.waiters.length > 0 ? [{ id, ...reply }] : [];
      } catch (error) {
        if (!isOtherFormat(this.#driver, error)) throw error;
        unreadable.push(id);
        return [];
      }
    };
    return { locks: (await Promise.all(ids.map(read))).flat(), unreadable, cursor };
  }

  subscribe(process: string, listener: StoreListener, options?: SubscribeOptions): Promise<Unsubscribe> {
    const hear = this.#replicas === undefined ? listener : wakeUpsOnly(listener);
    return this.#channel.subscribe(process, hear, options).then((end) => {
      warnOfServer(this.#driver, listener);
      inBackground(
        warnOfRights(this.#driver, this.#prefix, [this.#record('check'), `${this.#channels}check`], listener),
      );
      this.#replicas?.open();
      this.#shardedSubscriptions?.open(process, hear);
      return () => {
        this.#shardedSubscriptions?.close(process);
        const ended = end();
        if (this.#channel.isIdle) this.#replicas?.close();
        return ended;
      };
    });
  }

  /** Milliseconds since the server's start. The user needs the right to call INFO. */
  uptimeMs(): Promise<number> {
    return this.#uptime.uptimeMs();
  }

  #acquire(
    scripts: RedisScripts,
    request: HoldRequest,
    terms: AcquireTerms,
    onAnswered: () => boolean,
  ): Promise<AcquireReply> {
    const { leaseMs, maxWaiters, livenessMs, queue } = terms;
    const permits = request.permits === undefined ? '' : `+${request.permits}`;
    const lease = `${letterOf(request.mode)}+${String(leaseMs).padStart(12, '0')}${permits}`;
    const args = this.#args(request, lease, queue ? 1 : 0, maxWaiters, livenessMs);
    const { minFence, newest } = terms;
    if (minFence !== undefined || newest !== undefined) args.push(String(minFence ?? 0).padStart(16, '0'));
    if (newest !== undefined) args.push(`${callerIds(newest)} ${waiterTerms(newest)}`);
    const read = (reply: unknown): AcquireReply => {
      const mayArriveLater = onAnswered();
      const { holdId, process } = request;
      const result = Array.isArray(reply) ? readAcquire(holdId, reply) : readGrant(holdId, Number(reply), leaseMs);
      // Twice as long as the process keeps its places in the queue without a poll.
      if (result.status === 'queued') this.#shardedSubscriptions?.listen(String(args[0]), process, 2 * livenessMs);
      return Object.assign(result, { mayArriveLater });
    };
    return scripts.run(this.#operations.acquire, args, read, 2, onAnswered);
  }

  #renew(scripts: RedisScripts, request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    const args = this.#args(request, terms.leaseMs, 0);
    return scripts.run(this.#operations.renew, [...args, terms.fence], readRenew);
  }

  /** The keys and the first two arguments of a script, as lua/parts/call.lua names them. */
  #args(request: HoldRequest, amount: Item, flag: number, maxWaiters = 0, livenessMs = 0): Item[] {
    const [record, queue] = this.#keys(request.id);
    const rest = `${amount} ${flag} ${waiterTerms(request)} ${maxWaiters} ${livenessMs} ${this.#channels}`;
    return [record, queue, callerIds(request), rest];
  }

  #record(id: string): string {
    return this.#keys(id)[0];
  }

  /** The hash tag keeps both keys of a lock in one slot. An encoded name is never empty and has no braces. */
  #keys(id: string): [string, string] {
    const lock = `${this.#prefix}{${id}}`;
    return [`${lock}:lock`, `${lock}:queue`];
  }
}

const rules = {
  client: redisClient,
  prefix: text(/^[^{}\s]*$/, 'a string without braces and white space'),
  waitReplicas: wholeNumber(0, 100),
  recordTtlMs: milliseconds(60_000),
};

/** The ids that identify a hold or a waiter to the scripts. */
function callerIds({ holdId, owner, process }: HoldRequest): string {
  return `${process} ${owner} ${holdId}`;
}

/** What a waiter's entry in the queue says beside the ids. */
function waiterTerms(request: HoldRequest): string {
  return `${letterOf(request.mode)} ${request.claimMs} ${request.priority}`;
}

/** A holder of a permit is a reader that few others may join: the record says how many. */
function letterOf(mode: HoldMode): 'r' | 'w' {
  return mode === 'write' ? 'w' : 'r';
}
