import type { Link } from '../../core/base/link.ts';
import { inBackground } from '../../core/base/safely.ts';
import { LockConfigError } from '../../core/model/errors/mistakes.ts';
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
import { checkOptions, milliseconds, text, wholeNumber } from '../../core/model/validate.ts';
import { CallHistory } from './call-history.ts';
import { type HoldCalls, keysOf, RedisCalls } from './calls.ts';
import { RedisChannel } from './channel.ts';
import { scanLocks } from './cluster/listing.ts';
import { ConfirmedCalls } from './cluster/replicas.ts';
import { ShardedSubscriptions } from './cluster/sharded-subscriptions.ts';
import type { RedisDriver } from './drivers/driver.ts';
import { driverOf, type RedisClient, redisClient } from './drivers/driver-of.ts';
import { RedisEdges } from './edges.ts';
import { isOtherFormat } from './errors.ts';
import { readInspect } from './replies.ts';
import { warnOfRights } from './rights.ts';
import { forceRelease, inspect } from './scripts.generated.ts';
import { RedisScripts } from './scripts.ts';
import { ServerUptime, warnOfServer } from './server-info.ts';

/** The options of a `RedisStore`. */
export interface RedisStoreOptions {
  /** The application's client, of ioredis, iovalkey or node-redis. It is neither changed nor closed. */
  readonly client: RedisClient;
  /** The beginning of every key and channel, without braces and white space. Default `reenlock:`. */
  readonly prefix?: string | undefined;
  /**
   * How many replicas must have a grant or a renewal before it counts. This adds two round trips to a grant and one to a
   * renewal, on separate connections. If replicas are missing, nothing is granted or renewed. Default 0.
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
 * Keeps locks on Redis, for any number of processes. Each operation is one script call on the primary; in a cluster, on the primary of the
 * lock's slot. Grants arrive through one subscription for each process; in a cluster, also one for each lock. The store opens
 * connections for them, and closes these when the last `Locks` on it is closed. It never closes your client. Throws
 * `LockConfigError` for bad options. Its calls reject with `LockStoreError`.
 *
 * @example
 * ```ts
 * import { configureLocks } from 'reenlock';
 * import { RedisStore } from 'reenlock/redis';
 * import { createClient } from 'redis';
 *
 * const client = await createClient({ url: process.env.REDIS_URL }).connect();
 * const locks = configureLocks({ store: new RedisStore({ client, prefix: 'shop:' }) });
 * ```
 */
export class RedisStore implements LockStore {
  readonly capabilities: StoreCapabilities;
  readonly link: Link;
  readonly edges: EdgeStore;
  readonly #driver: RedisDriver;
  readonly #scripts: RedisScripts;
  readonly #calls: HoldCalls;
  readonly #prefix: string;
  readonly #recordTtlMs: number;
  readonly #channels: string;
  readonly #channel: RedisChannel;
  readonly #uptime: ServerUptime;
  readonly #shardedSubscriptions: ShardedSubscriptions | undefined;

  constructor(options: RedisStoreOptions) {
    const given = checkOptions(options, rules, 'RedisStore', 'client');
    const { client, prefix = 'reenlock:', waitReplicas = 0, recordTtlMs = 3_600_000 } = given;
    const driver = driverOf(client);
    this.#driver = driver;
    this.link = driver.link;
    this.#prefix = prefix;
    this.#recordTtlMs = recordTtlMs;
    if (/^[^{]*\{\}/.test(driver.keyPrefix)) {
      throw new LockConfigError(
        'Expected the key prefix of the client to be free of `{}`, which undoes the hash tag of every key',
      );
    }
    // A server of a cluster knows only its own subscribers, not whether a process is unreachable.
    const shardedSubscriptions = driver.cluster && new ShardedSubscriptions(driver, driver.cluster);
    this.#shardedSubscriptions = shardedSubscriptions;
    this.capabilities = { ...capabilities, reachability: shardedSubscriptions === undefined };
    // No prefix has braces: they show the scripts that this is a cluster.
    const channels = `${prefix}${shardedSubscriptions === undefined ? 'grants:' : '{grants}:'}`;
    this.#channels = channels;
    this.#channel = new RedisChannel(driver, channels);
    this.#uptime = new ServerUptime(driver);
    this.#scripts = new RedisScripts(driver);
    this.edges = new RedisEdges(this.#scripts, prefix);
    const history = new CallHistory(driver);
    const calls = new RedisCalls(
      { driver, history, shardedSubscriptions, prefix, channels, recordTtlMs },
      this.#scripts,
    );
    this.#calls = waitReplicas === 0 ? calls : new ConfirmedCalls(driver, prefix, calls, waitReplicas);
  }

  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    return this.#calls.acquire(request, terms);
  }

  renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return this.#calls.renew(request, terms);
  }

  release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    return this.#calls.release(request, terms);
  }

  transfer(from: HoldRequest, to: HoldRequest, terms: TransferTerms): Promise<TransferReply> {
    return this.#calls.transfer(from, to, terms);
  }

  inspect(id: string): Promise<InspectReply> {
    const keys = keysOf(this.#prefix, id);
    return this.#scripts.run(inspect, keys, [], readInspect);
  }

  forceRelease(id: string, fence: number): Promise<boolean> {
    const keys = keysOf(this.#prefix, id);
    const args = [fence, this.#recordTtlMs, this.#channels];
    return this.#scripts.run(forceRelease, keys, args, (reply) => Number(reply) === 1);
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
    const wrapped = this.#calls.wrapListener?.(listener) ?? listener;
    return this.#channel.subscribe(process, wrapped, options).then((end) => {
      warnOfServer(this.#driver, listener);
      const [lock] = keysOf(this.#prefix, 'check');
      inBackground(warnOfRights(this.#driver, this.#prefix, [lock, `${this.#channels}check`], listener));
      this.#calls.open?.();
      this.#shardedSubscriptions?.open(process, wrapped);
      return () => {
        this.#shardedSubscriptions?.close(process);
        const ended = end();
        if (this.#channel.isIdle) this.#calls.close?.();
        return ended;
      };
    });
  }

  /** Milliseconds since the server's start. The user needs the right to call INFO. */
  uptimeMs(): Promise<number> {
    return this.#uptime.uptimeMs();
  }
}

const rules = {
  client: redisClient,
  prefix: text(/^[^{}\s]*$/, 'a string without braces and white space'),
  waitReplicas: wholeNumber(0, 100),
  recordTtlMs: milliseconds(60_000),
};
