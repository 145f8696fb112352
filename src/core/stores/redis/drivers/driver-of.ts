import type { Cluster, Redis } from 'ioredis';
import { describe, type Rule } from '../../../model/validate.ts';
import type { RedisDriver } from './driver.ts';
import { IoredisDriver } from './ioredis.ts';
import { IoredisClusterDriver } from './ioredis-cluster.ts';

/**
 * A client of ioredis: of one server, behind Sentinel, or of a cluster. Only what tells it from other clients is named here,
 * so that no application needs the types of a library that it does not use.
 */
export interface RedisClient {
  readonly isCluster: boolean;
  readonly status: string;
  call(command: string): Promise<unknown>;
}

/** The rule for an option that takes a client. A client of another library is named in the message. */
export const redisClient: Rule = {
  expected: 'an ioredis client',
  got: (value) => {
    const name: unknown = Object(value).constructor?.name;
    const isClient = typeof value === 'object' && typeof name === 'string' && !/^(Object|Array)?$/.test(name);
    return isClient ? `a \`${name}\`: other clients are not supported` : describe(value);
  },
  accepts: isIoredis,
};

/** All stores on a client share its driver: it decides when the calls on their common connection are written. */
const drivers = new WeakMap<object, RedisDriver>();

/** The driver of a client. The structure of the client says which library it is of. */
export function driverOf(client: RedisClient): RedisDriver {
  const known = drivers.get(client);
  if (known !== undefined) return known;
  const driver = client.isCluster
    ? new IoredisClusterDriver(client as unknown as Cluster)
    : new IoredisDriver(client as unknown as Redis);
  drivers.set(client, driver);
  return driver;
}

function isIoredis(client: unknown): boolean {
  const { call, duplicate, status } = Object(client) as Partial<Redis>;
  return typeof call === 'function' && typeof duplicate === 'function' && typeof status === 'string';
}
