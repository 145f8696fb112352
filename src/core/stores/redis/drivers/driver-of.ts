import type { Cluster, Redis } from 'ioredis';
import { describe, type Rule } from '../../../model/validate.ts';
import type { RedisDriver } from './driver.ts';
import { IoredisClusterDriver } from './ioredis/cluster-driver.ts';
import { IoredisDriver } from './ioredis/single-driver.ts';
import type { NodeRedisClient } from './node-redis/calls.ts';
import { NodeRedisDriver } from './node-redis/single-driver.ts';

/**
 * A client of ioredis or iovalkey: of one server, behind Sentinel, or of a cluster. Or a client of node-redis for one
 * server. Only what tells them from other clients is named here, so that no application needs the types of a library that
 * it does not use.
 */
export type RedisClient = IoredisLike | NodeRedisLike;

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

/** The rule for an option that takes a client. A client of another kind is named in the message. */
export const redisClient: Rule = {
  expected: 'a client of ioredis or iovalkey, or of node-redis by `createClient`',
  got: (value) => {
    const type = Object(value).constructor;
    // node-redis makes a nameless class of its own for each set of modules.
    const name: unknown = type?.name === 'Class' ? Object.getPrototypeOf(type).name : type?.name;
    const isClient = typeof value === 'object' && typeof name === 'string' && !/^(Object|Array)?$/.test(name);
    return isClient ? `a \`${name}\`, which is not supported` : describe(value);
  },
  accepts: (value) => isIoredis(value) || isNodeRedis(value),
};

/** All stores on a client share its driver: it decides when the calls on their common connection are written. */
const drivers = new WeakMap<object, RedisDriver>();

/** The driver of a client. The structure of the client says which library it is of. */
export function driverOf(client: RedisClient): RedisDriver {
  const known = drivers.get(client);
  if (known !== undefined) return known;
  const driver = create(client);
  drivers.set(client, driver);
  return driver;
}

function create(client: RedisClient): RedisDriver {
  if (!('isCluster' in client)) return new NodeRedisDriver(client as unknown as NodeRedisClient);
  // An iovalkey client is an ioredis client in all that is used here.
  if (client.isCluster) return new IoredisClusterDriver(client as unknown as Cluster);
  return new IoredisDriver(client as unknown as Redis);
}

function isIoredis(client: unknown): boolean {
  const { call, duplicate, status } = Object(client) as Partial<Redis>;
  return typeof call === 'function' && typeof duplicate === 'function' && typeof status === 'string';
}

/** Of the clients of node-redis, those for Sentinel and for a cluster, and pools, have no single socket. */
function isNodeRedis(client: unknown): boolean {
  const { sendCommand, duplicate, socketEpoch } = Object(client) as Partial<NodeRedisClient>;
  return typeof sendCommand === 'function' && typeof duplicate === 'function' && typeof socketEpoch === 'number';
}
