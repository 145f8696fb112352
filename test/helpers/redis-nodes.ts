import { once } from 'node:events';
import { Redis, type RedisOptions } from 'ioredis';
import { RedisStore } from '../../src/core/store/redis-store.ts';
import { RedisUptime } from '../../src/core/store/redis-uptime.ts';
import type {
  AcquireReply,
  AcquireTerms,
  HoldRequest,
  InspectReply,
  LockStore,
  RenewReply,
  RenewTerms,
  StoreCapabilities,
} from '../../src/core/store/store.ts';
import { type RedisServer, startRedis } from './redis-server.ts';

/**
 * The fence that is told for a hold, beside the one that the store keeps: { the store's, the one told }. A new fence of the
 * store's begins a new pair, above the last one told; `minFence` raises that of a hold that is alone.
 */
const tell = `
local stored, told = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')
local fence, least, isAlone = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
if stored == fence then
  if isAlone then told = math.max(tonumber(told), least) end
else
  told = math.max(tonumber(fence), least, (tonumber(told) or 0) + 1)
end
told = string.format('%.0f', told)
redis.call('SET', KEYS[1], fence .. ' ' .. told)
return told`;

/** A node of a quorum on a Redis server: a `RedisStore` that heeds `minFence`. */
export class RedisNode extends RedisStore {
  override readonly capabilities: StoreCapabilities = {
    queue: true,
    handOff: true,
    reachability: true,
    modes: false,
    shared: true,
    minFence: true,
  };
  readonly client: Redis;

  constructor(client: Redis) {
    super({ client });
    this.client = client;
  }

  override async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const reply = await super.acquire(request, terms);
    if (reply.status !== 'granted') return reply;
    const isAlone = terms.minFence !== undefined && (await super.inspect(request.id)).holds.length === 1;
    const { fence } = reply.grant;
    const told = await this.client.eval(tell, 1, fenceKey(request.id), fence, terms.minFence ?? 0, isAlone ? 1 : 0);
    return { ...reply, grant: { ...reply.grant, fence: Number(told) } };
  }

  override async renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return super.renew(request, { ...terms, fence: await this.#stored(request.id, terms.fence) });
  }

  override async forceRelease(id: string, fence: number): Promise<boolean> {
    return super.forceRelease(id, await this.#stored(id, fence));
  }

  override async inspect(id: string): Promise<InspectReply> {
    const reply = await super.inspect(id);
    const pair = await this.#pair(id);
    const holds = reply.holds.map((hold) => (hold.fence === pair.stored ? { ...hold, fence: pair.told } : hold));
    return { ...reply, holds };
  }

  async #stored(id: string, told: number): Promise<number> {
    const pair = await this.#pair(id);
    return pair.told === told ? pair.stored : -1;
  }

  async #pair(id: string): Promise<{ stored: number; told: number }> {
    const [stored = 0, told = 0] = ((await this.client.get(fenceKey(id))) ?? '').split(' ').map(Number);
    return { stored, told };
  }
}

/** A node that also says how long its server has been up. */
export class AgedRedisNode extends RedisNode implements LockStore {
  readonly #uptime: RedisUptime = new RedisUptime(this.client);

  uptimeMs(): Promise<number> {
    return this.#uptime.uptimeMs();
  }
}

function fenceKey(id: string): string {
  return `fence:${id}`;
}

/** Servers of their own, and clients to them as one process has them. */
export class RedisNodes {
  readonly servers: RedisServer[] = [];
  readonly #clients: Redis[] = [];

  async start(count: number): Promise<void> {
    this.servers.push(...(await Promise.all(Array.from({ length: count }, () => startRedis()))));
  }

  /** The nodes as another process sees them. */
  connect(options: Omit<RedisOptions, 'replyMapping'> = {}): RedisNode[] {
    return this.servers.map(({ port }) => this.node(port, options));
  }

  node(port: number, options: Omit<RedisOptions, 'replyMapping'> = {}): RedisNode {
    return new RedisNode(this.client(port, options));
  }

  client(port: number, options: Omit<RedisOptions, 'replyMapping'> = {}): Redis {
    const client = new Redis(port, { retryStrategy: () => 10, ...options });
    // What ioredis says by event it also says to each call.
    client.on('error', () => {});
    this.#clients.push(client);
    return client;
  }

  /** Ends every client, and awaits the ends of their connections. */
  async disconnect(): Promise<void> {
    const clients = this.#clients.splice(0);
    const streams = clients.flatMap(({ stream }) => (stream === undefined || stream.closed ? [] : [stream]));
    const ends = streams.map((stream) => once(stream, 'close'));
    for (const client of clients) client.disconnect();
    await Promise.all(ends);
  }

  async stop(): Promise<void> {
    await this.disconnect();
    await Promise.all(this.servers.splice(0).map((server) => server.stop()));
  }
}
