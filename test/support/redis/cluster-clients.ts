import { createRequire } from 'node:module';
import { Cluster as Cluster6 } from 'ioredis';
import { createCluster as createCluster6 } from 'redis';
import { matrix } from '../matrix.ts';
import { type ClientOptions, disconnectTimeout, type Library, type OpenClient } from './client.ts';

export interface ClusterClientOptions extends ClientOptions {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** How often a call is tried, soon again, by a client that has a say in that. */
  readonly maxRedirections?: number;
  /** Whether it gives up if it finds no server at first. */
  readonly isImpatient?: boolean;
}

/** For a cluster. Connecting resolves when all connections are open, or when it has given up. */
export type ClusterLibrary = Library<ClusterClientOptions, Promise<OpenClient>>;

function ioredis(name: string, Class: typeof Cluster6): ClusterLibrary {
  return {
    name,
    hasKeyPrefix: true,
    async connect({ nodes, keyPrefix = '', isImpatient = false, maxRedirections, ...login }) {
      const soon = { retryDelayOnClusterDown: 10, retryDelayOnFailover: 10, retryDelayOnTryAgain: 1 };
      const client = new Class([...nodes], {
        keyPrefix,
        ...(maxRedirections !== undefined && { maxRedirections, ...soon }),
        redisOptions: { disconnectTimeout, ...login },
        ...(isImpatient && { clusterRetryStrategy: () => null }),
      });
      // What ioredis says by event it also says to each call.
      client.on('error', () => {});
      if (!isImpatient) {
        await client.ping();
        await Promise.all(client.nodes().map((node) => node.ping()));
      }
      return { client, close: () => client.disconnect() };
    },
  };
}

function nodeRedis(name: string, create: typeof createCluster6, hasKeyPrefix: boolean): ClusterLibrary {
  return {
    name,
    hasKeyPrefix,
    async connect({ nodes, keyPrefix = '', isImpatient = false, maxRedirections, ...login }) {
      const client = create({
        rootNodes: nodes.map((socket) => ({ socket })),
        defaults: { ...login, socket: { reconnectStrategy: () => 20 } },
        ...(hasKeyPrefix && { keyPrefix }),
        ...(maxRedirections !== undefined && { maxCommandRedirections: maxRedirections }),
      });
      client.on('error', () => {});
      await client.connect().catch((error: unknown) => {
        if (!isImpatient) throw error;
      });
      return {
        client,
        close: () => {
          if (client.isOpen) client.destroy();
        },
      };
    },
  };
}

const load = createRequire(__filename);
const ioredis6 = ioredis('ioredis 6', Cluster6);
const nodeRedis6 = nodeRedis('node-redis 6', createCluster6, true);

/** The client libraries that the tests on a cluster are true of. */
export const clusterLibraries: readonly ClusterLibrary[] = matrix([ioredis6, nodeRedis6], () => [
  ioredis('ioredis 5', load('ioredis5').Cluster),
  nodeRedis('node-redis 5', load('redis5').createCluster, false),
]);

/** One of each driver. */
export const newestClusterLibraries: readonly ClusterLibrary[] = [ioredis6, nodeRedis6];

/** Those that all faults of a cluster are played with, as in `clients.ts`. */
export const clusterLibrariesForFaults: readonly ClusterLibrary[] = matrix([ioredis6], () => [nodeRedis6]);
