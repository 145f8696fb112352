import { createRequire } from 'node:module';
import { Redis as Redis6 } from 'ioredis';
import { createSentinel as createSentinel6 } from 'redis';
import { matrix } from '../matrix.ts';
import { type ClientOptions, disconnectTimeout, type Library, type OpenClient } from './client.ts';

export interface SentinelClientOptions extends ClientOptions {
  readonly name: string;
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
}

/** For the primary behind Sentinel. Connecting resolves when the connection is open. */
export type SentinelLibrary = Library<SentinelClientOptions, Promise<OpenClient>>;

function ioredis(name: string, Class: typeof Redis6): SentinelLibrary {
  return {
    name,
    hasKeyPrefix: true,
    async connect({ sentinels, ...options }) {
      const retry = { retryStrategy: () => 20, sentinelRetryStrategy: () => 20 };
      const client = new Class({ ...options, ...retry, sentinels: [...sentinels], disconnectTimeout });
      client.on('error', () => {});
      await client.ping();
      return { client, close: () => client.disconnect() };
    },
  };
}

function nodeRedis(name: string, create: typeof createSentinel6, hasKeyPrefix: boolean): SentinelLibrary {
  return {
    name,
    hasKeyPrefix,
    async connect({ name: group, sentinels, keyPrefix = '', ...login }) {
      const client = create({
        name: group,
        sentinelRootNodes: [...sentinels],
        nodeClientOptions: { ...login, socket: { reconnectStrategy: () => 20 } },
        ...(hasKeyPrefix && { keyPrefix }),
      });
      client.on('error', () => {});
      await client.connect();
      return { client, close: () => client.destroy() };
    },
  };
}

const load = createRequire(__filename);
const ioredis6 = ioredis('ioredis 6', Redis6);
const nodeRedis6 = nodeRedis('node-redis 6', createSentinel6, true);

/** Those that the contract is kept with: for ioredis, one class and one driver serve a single server and Sentinel. */
export const sentinelLibraries: readonly SentinelLibrary[] = matrix([nodeRedis6], () => [
  nodeRedis('node-redis 5', load('redis5').createSentinel, false),
]);

/** One of each driver. */
export const newestSentinelLibraries: readonly SentinelLibrary[] = [ioredis6, nodeRedis6];

/** Those that all failovers are played with, as in `clients.ts`. */
export const sentinelLibrariesForFaults: readonly SentinelLibrary[] = matrix([ioredis6], () => [nodeRedis6]);
