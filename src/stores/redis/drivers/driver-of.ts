import type { Cluster, Redis } from 'ioredis';
import { isPromise } from '../../../core/base/maybe-promise.ts';
import { describe, type Rule } from '../../../core/model/validate.ts';
import type { RedisDriver } from './driver.ts';
import { IoredisClusterDriver } from './ioredis/cluster-driver.ts';
import { IoredisDriver } from './ioredis/single-driver.ts';
import type { NodeRedisClient } from './node-redis/calls.ts';
import { NodeRedisClusterDriver } from './node-redis/cluster-driver.ts';
import type { NodeRedisCluster } from './node-redis/cluster-nodes.ts';
import { NodeRedisSentinelDriver } from './node-redis/sentinel-driver.ts';
import type { NodeRedisSentinel } from './node-redis/sentinel-primary.ts';
import { NodeRedisDriver } from './node-redis/single-driver.ts';

/**
 * A client of ioredis, iovalkey or node-redis: for one server, behind Sentinel, or for a cluster. This names only the properties
 * that distinguish them from other clients: an application needs no types of a library that it does not use.
 */
export type RedisClient = IoredisLike | NodeRedisLike | NodeRedisSentinelLike | NodeRedisClusterLike;

interface IoredisLike {
  readonly isCluster: boolean;
  readonly status: string;
  call(command: string): Promise<unknown>;
}

interface NodeRedisLike {
  readonly isReady: boolean;
  readonly socketEpoch: number;
  sendCommand(args: string[]): Promise<unknown>;
}

interface NodeRedisSentinelLike {
  readonly isOpen: boolean;
  getMasterNode(): object | undefined;
  sendCommand(isReadonly: boolean, args: string[]): Promise<unknown>;
}

interface NodeRedisClusterLike {
  readonly isOpen: boolean;
  readonly nodeByAddress: object;
  sendCommand(firstKey: string, isReadonly: boolean, args: string[]): Promise<unknown>;
}

/** The rule for an option that takes a client. The message names a client of another kind. */
export const redisClient: Rule = {
  expected:
    'a client of ioredis 5 or newer or of iovalkey, or of node-redis 5.8 or newer by `createClient`, `createSentinel` or `createCluster`',
  got: describeClient,
  accepts: (value) => [isIoredis, isNodeRedis, isNodeRedisSentinel, isNodeRedisCluster].some((is) => is(value)),
};

/** Says what a value is that is no client of these, and what to do. */
function describeClient(value: unknown): string {
  if (Array.isArray(value)) return 'an array: for locks on several servers take a `QuorumStore`, with a store for each';
  if (isPromise(value)) return 'a promise: await it first';
  if (typeof value === 'string') return `${describe(value)}: create a client with it first`;
  const old = oldLibrary(value);
  if (old !== undefined) return `one of ${old}: npm install ${old.split(' ')[0]}@latest`;
  const client = Object(value) as { createScript?: unknown; opts?: unknown };
  if (typeof client.createScript === 'function' && typeof client.opts === 'object') {
    return 'a client of @upstash/redis, which sends single requests over HTTP: connect ioredis to the `rediss://` address of the database';
  }
  const type = Object(value).constructor;
  // node-redis creates an anonymous class for each set of modules.
  const name: unknown = type?.name === 'Class' ? Object.getPrototypeOf(type).name : type?.name;
  const isClient = typeof value === 'object' && typeof name === 'string' && !/^(Object|Array)?$/.test(name);
  return isClient ? `a \`${name}\`, which is not supported` : describe(value);
}

/** All stores on a client share its driver: it decides when the calls on their common connection are written. */
const drivers = new WeakMap<object, RedisDriver>();

/** The driver of a client. The structure of the client shows its library. */
export function driverOf(client: RedisClient): RedisDriver {
  const known = drivers.get(client);
  if (known !== undefined) return known;
  const driver = create(client);
  drivers.set(client, driver);
  return driver;
}

function create(client: RedisClient): RedisDriver {
  if (isNodeRedis(client)) return new NodeRedisDriver(client);
  if (isNodeRedisSentinel(client)) return new NodeRedisSentinelDriver(client);
  if (isNodeRedisCluster(client)) return new NodeRedisClusterDriver(client);
  // An iovalkey client is an ioredis client in all that is used here.
  const known = client as unknown as Redis | Cluster;
  return known.isCluster ? new IoredisClusterDriver(known as Cluster) : new IoredisDriver(known as Redis);
}

function isIoredis(client: unknown): boolean {
  const { call, duplicate, status } = Object(client) as Partial<Redis>;
  return (
    !isIoredis4(client) && typeof call === 'function' && typeof duplicate === 'function' && typeof status === 'string'
  );
}

/** A pool of node-redis has no single socket. */
function isNodeRedis(client: unknown): client is NodeRedisClient {
  const { sendCommand, duplicate, socketEpoch } = Object(client) as Partial<NodeRedisClient>;
  return typeof sendCommand === 'function' && typeof duplicate === 'function' && typeof socketEpoch === 'number';
}

function isNodeRedisSentinel(client: unknown): client is NodeRedisSentinel {
  const { getMasterNode, _execute } = Object(client) as { getMasterNode?: unknown; _execute?: unknown };
  return typeof getMasterNode === 'function' && typeof _execute === 'function';
}

function isNodeRedisCluster(client: unknown): client is NodeRedisCluster {
  const { nodeByAddress, _slots } = Object(client) as Partial<NodeRedisCluster>;
  return nodeByAddress instanceof Map && typeof _slots?.rediscover === 'function';
}

/** What a client that is refused is of, by what that old version has or lacks: no client names its version. */
function oldLibrary(client: unknown): string | undefined {
  if (isIoredis4(client)) return 'ioredis 4';
  const { isOpen, sendCommand, withTypeMapping } = Object(client) as Partial<NodeRedisClient> & Record<string, unknown>;
  const isNodeRedis4 =
    typeof isOpen === 'boolean' && typeof sendCommand === 'function' && withTypeMapping === undefined;
  return isNodeRedis4 ? 'redis 4' : undefined;
}

function isIoredis4(client: unknown): boolean {
  const { call, options } = Object(client) as { call?: unknown; options?: unknown };
  return typeof call === 'function' && 'maxScriptsCachingTime' in Object(options);
}
