import { LockConfigError, LockStoreError } from '../../model/errors.ts';
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
  Unsubscribe,
} from '../../model/store.ts';
import type { LockMode } from '../../model/types.ts';
import { checkOptions, objectWith, text, wholeNumber } from '../../model/validate.ts';
import { RedisChannel } from './channel.ts';
import { isCluster, type RedisOrCluster } from './cluster/cluster.ts';
import { scanLocks } from './cluster/listing.ts';
import { RedisReplicas, wakeUp, wakeUpsOnly } from './cluster/replicas.ts';
import { RedisShards } from './cluster/shards.ts';
import { RedisEdges } from './edges.ts';
import { RedisHistory } from './history.ts';
import { readAcquire, readGrant, readInspect, readRelease, readRenew } from './replies.ts';
import { acquire, forceRelease, inspect, release, renew } from './scripts.generated.ts';
import { type Item, RedisScripts } from './scripts.ts';
import { warnOfServer } from './server-info.ts';
import { RedisUnsent } from './unsent.ts';
import { RedisUptime } from './uptime.ts';

/** Which server keeps the locks, under which names. */
export interface RedisStoreOptions {
  /** An ioredis client of the application's, of one primary or a `Cluster`; it is neither changed nor closed. */
  readonly client: RedisOrCluster;
  /** Before every key and channel; without braces and white space. Default `reenlock:`. */
  readonly prefix?: string | undefined;
  /**
   * How many replicas must have a grant or a renewal before it counts. A grant costs two round trips more, a renewal one, on
   * connections of the store's own; where replicas are missing, nothing is granted or renewed. Default 0.
   */
  readonly waitReplicas?: number | undefined;
}

const capabilities = { queue: true, handOff: true, modes: true, shared: true, minFence: true, edges: true };

/**
 * Locks on Redis, for any number of processes. Every operation is one script call on the primary, in a cluster on that of
 * the lock's slot; grants come through one subscription a process, in a cluster also through one a lock, on connections
 * that the store opens beside the client's and closes when the last `Locks` on it is closed. Throws `LockConfigError` for
 * bad options; its calls reject with `LockStoreError`.
 */
export class RedisStore implements LockStore {
  readonly capabilities: StoreCapabilities;
  readonly edges: EdgeStore;
  readonly #client: RedisOrCluster;
  readonly #scripts: RedisScripts;
  readonly #history: RedisHistory;
  readonly #unsent: RedisUnsent;
  readonly #prefix: string;
  readonly #channels: string;
  readonly #channel: RedisChannel;
  readonly #uptime: RedisUptime;
  readonly #shards: RedisShards | undefined;
  readonly #replicas: RedisReplicas | undefined;

  constructor(options: RedisStoreOptions) {
    const { client, prefix = 'reenlock:', waitReplicas = 0 } = checkOptions(options, rules, 'RedisStore', 'client');
    this.#client = client;
    this.#scripts = new RedisScripts(client);
    this.#history = new RedisHistory(client);
    this.#unsent = new RedisUnsent(client);
    this.#prefix = prefix;
    if (/^[^{]*\{\}/.test(client.options?.keyPrefix ?? '')) {
      throw new LockConfigError(
        'Expected the key prefix of the client to be free of `{}`, which undoes the hash tag of every key',
      );
    }
    // In a cluster a server knows its own subscribers only: of who never listened to it, it can tell nothing.
    this.#shards = isCluster(client) ? new RedisShards(client) : undefined;
    this.capabilities = { ...capabilities, reachability: this.#shards === undefined };
    // The braces, which no prefix has, tell the scripts that this is a cluster.
    this.#channels = `${this.#prefix}${this.#shards === undefined ? 'grants:' : '{grants}:'}`;
    this.#channel = new RedisChannel(client, this.#channels);
    this.#uptime = new RedisUptime(client);
    this.edges = new RedisEdges(this.#scripts, this.#prefix, (request) => [
      ...this.#keys(request.id),
      `${namesOf(request)} ${wants(request)}`,
    ]);
    this.#replicas = waitReplicas === 0 ? undefined : new RedisReplicas(client, waitReplicas);
  }

  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    // From now on, also where it is to wait for a connection: what is given back meanwhile must be remembered.
    let answered = this.#history.asked(request);
    if (this.#replicas === undefined) return this.#acquire(this.#scripts, request, terms, answered);
    let isRepeated = false;
    const calls = async (scripts: RedisScripts): Promise<AcquireReply> => {
      if (isRepeated) answered = this.#history.asked(request);
      isRepeated = true;
      const reply = await this.#acquire(scripts, request, terms, answered);
      const claims = reply.claims.map(wakeUp);
      if (reply.status !== 'granted') return { ...reply, claims };
      // It may be the grant of another call, written on another connection: it is written again on this one.
      const { fence, isClaim } = reply.grant;
      const leaseMs = isClaim ? request.claimMs : terms.leaseMs;
      const renewed = await this.#renew(scripts, request, { fence, leaseMs }).catch(({ message, cause }) => {
        throw new LockStoreError(message, { cause, outcome: 'unknown' });
      });
      if (renewed.status === 'lost') throw new LockStoreError('The grant was over at once', { outcome: 'unknown' });
      return { ...reply, claims, grant: { ...reply.grant, endMs: renewed.endMs }, nowMs: renewed.nowMs };
    };
    const isGrant = ({ status }: AcquireReply): boolean => status === 'granted';
    return this.#replicas.confirmed('acquire', this.#record(request.id), calls, isGrant, () => answered());
  }

  renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    if (this.#replicas === undefined) return this.#renew(this.#scripts, request, terms);
    const call = (scripts: RedisScripts): Promise<RenewReply> => this.#renew(scripts, request, terms);
    return this.#replicas.confirmed('renew', this.#record(request.id), call, ({ status }) => status === 'renewed');
  }

  release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    const flag = this.#history.flagOf(request, terms.tombstoneMs);
    const args = this.#args(request, terms.tombstoneMs, flag);
    if (terms.announce) args.push(request.id);
    const read = (reply: unknown): ReleaseReply => {
      this.#history.released(request);
      const answer = readRelease(reply);
      return this.#replicas === undefined ? answer : { ...answer, claims: answer.claims.map(wakeUp) };
    };
    const answer = this.#unsent.run(request, () => this.#scripts.run(release, args, read));
    this.#history.releasing(request);
    return answer;
  }

  inspect(id: string): Promise<InspectReply> {
    return this.#scripts.run(inspect, this.#keys(id), readInspect);
  }

  forceRelease(id: string, fence: number): Promise<boolean> {
    // As `#args`, of nobody.
    const args = [...this.#keys(id), '- - -', `${fence} 0 w 0 0 0 0 ${this.#channels}`];
    return this.#scripts.run(forceRelease, args, (reply) => Number(reply) === 1);
  }

  async list(request: ListRequest): Promise<ListReply> {
    const { ids, cursor } = await scanLocks(this.#client, this.#prefix, request);
    const replies = await Promise.all(ids.map(async (id) => ({ id, ...(await this.inspect(id)) })));
    // A record outlives what it tells of.
    return { locks: replies.filter(({ holds, waiters }) => holds.length + waiters.length > 0), cursor };
  }

  subscribe(process: string, listener: StoreListener, options?: SubscribeOptions): Promise<Unsubscribe> {
    const heard = this.#replicas === undefined ? listener : wakeUpsOnly(listener);
    return this.#channel.subscribe(process, heard, options).then((end) => {
      // Not before: without a server, the client would keep the question of every try.
      warnOfServer(this.#client, listener);
      this.#replicas?.open();
      this.#shards?.open(process, heard);
      return () => {
        this.#shards?.close(process);
        const ended = end();
        if (this.#channel.isIdle) this.#replicas?.close();
        return ended;
      };
    });
  }

  /** Milliseconds since the server's start. It needs the right to call INFO. */
  uptimeMs(): Promise<number> {
    return this.#uptime.uptimeMs();
  }

  #acquire(
    scripts: RedisScripts,
    request: HoldRequest,
    terms: AcquireTerms,
    answered: () => void,
  ): Promise<AcquireReply> {
    const { leaseMs, maxWaiters, livenessMs, queue } = terms;
    const lease = `${letterOf(request.mode)}+${String(leaseMs).padStart(12, '0')}`;
    const args = this.#args(request, lease, queue ? 1 : 0, maxWaiters, livenessMs);
    if (terms.minFence !== undefined) args.push(String(terms.minFence).padStart(16, '0'));
    const read = (reply: unknown): AcquireReply => {
      answered();
      const { holdId, process } = request;
      if (!Array.isArray(reply)) return readGrant(holdId, Number(reply), leaseMs);
      const answer = readAcquire(holdId, reply);
      // Twice as long as its places in the queue may stay without a word of it.
      if (answer.status === 'queued') this.#shards?.listen(String(args[0]), process, 2 * livenessMs);
      return answer;
    };
    return scripts.run(acquire, args, read, 2, answered);
  }

  #renew(scripts: RedisScripts, request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    const args = this.#args(request, terms.leaseMs, 0);
    return scripts.run(renew, [...args, terms.fence], readRenew);
  }

  /** The keys and the first two arguments of a script, as _shared.lua names them. */
  #args(request: HoldRequest, amount: Item, flag: number, maxWaiters = 0, livenessMs = 0): Item[] {
    const [record, queue] = this.#keys(request.id);
    const rest = `${amount} ${flag} ${wants(request)} ${maxWaiters} ${livenessMs} ${this.#channels}`;
    return [record, queue, namesOf(request), rest];
  }

  #record(id: string): string {
    return this.#keys(id)[0];
  }

  /** The hash tag keeps both keys of a lock in one slot; an encoded name is never empty and has no braces. */
  #keys(id: string): [string, string] {
    const lock = `${this.#prefix}{${id}}`;
    return [`${lock}:lock`, `${lock}:queue`];
  }
}

const rules = {
  client: objectWith('an ioredis client', 'evalsha', 'eval', 'duplicate'),
  prefix: text(/^[^{}\s]*$/, 'a string without braces and white space'),
  waitReplicas: wholeNumber(0, 100),
};

/** What tells a hold or a waiter from others, to the scripts. */
function namesOf({ holdId, owner, process }: HoldRequest): string {
  return `${process} ${owner} ${holdId}`;
}

/** What a waiter's entry in the queue says beside the names. */
function wants(request: HoldRequest): string {
  return `${letterOf(request.mode)} ${request.claimMs} ${request.priority}`;
}

function letterOf(mode: LockMode): 'r' | 'w' {
  return mode === 'read' ? 'r' : 'w';
}
