import { createRequire } from 'node:module';
import { Redis as Redis6 } from 'ioredis';
import { createClient as createClient6 } from 'redis';
import type { RedisClient } from 'reenlock/redis';
import { matrix } from '../matrix.ts';
import { type ClientOptions, disconnectTimeout, type Library, type OpenClient } from './client.ts';

/** A client of an application, and what a test needs of it. */
export interface AppClient extends OpenClient {
  /** Resolves when it has a connection. */
  ready(): Promise<void>;
  /** How many commands it keeps: sent and not answered, or not sent. */
  queued(): number;
}

export interface AppClientOptions extends ClientOptions {
  readonly port: number;
  /** Of node-redis alone. */
  readonly commandOptions?: { readonly timeout: number };
  /** Of node-redis alone. */
  readonly commandsQueueMaxLength?: number;
  /** Of node-redis alone. */
  readonly socketTimeout?: number;
}

/** For one server. The client connects again soon, and for ever. */
export type ClientLibrary = Library<AppClientOptions, AppClient>;

type IoredisClass = new (
  options: object,
) => {
  readonly status: string;
  on(event: 'error', listener: () => void): unknown;
  once(event: 'ready', listener: () => void): unknown;
  disconnect(): void;
};

function ioredis(name: string, Class: unknown): ClientLibrary {
  return {
    name,
    hasKeyPrefix: true,
    connect(options) {
      const client = new (Class as IoredisClass)({
        host: '127.0.0.1',
        maxRetriesPerRequest: null,
        retryStrategy: () => 10,
        disconnectTimeout,
        ...options,
      });
      // What the client says by event it also says to each call.
      client.on('error', () => {});
      const { offlineQueue, commandQueue } = client as unknown as Record<string, { readonly length: number }>;
      const ready = new Promise<void>((resolve) => client.once('ready', resolve));
      return {
        client: client as unknown as RedisClient,
        ready: () => ready,
        queued: () => offlineQueue!.length + commandQueue!.length,
        close: () => client.disconnect(),
      };
    },
  };
}

function nodeRedis(name: string, create: typeof createClient6, hasKeyPrefix: boolean): ClientLibrary {
  return {
    name,
    hasKeyPrefix,
    connect({ port, socketTimeout, ...options }) {
      const socket = { host: '127.0.0.1', port, reconnectStrategy: () => 10, ...(socketTimeout && { socketTimeout }) };
      const client = create({ ...options, socket });
      client.on('error', () => {});
      const ready = new Promise<void>((resolve) => client.once('ready', () => resolve()));
      client.connect().catch(() => {});
      // The client does not say how many commands it keeps.
      let pending = 0;
      const send = client.sendCommand.bind(client);
      client.sendCommand = ((...args: Parameters<typeof send>) => {
        pending += 1;
        return send(...args).finally(() => {
          pending -= 1;
        });
      }) as typeof client.sendCommand;
      return {
        client,
        ready: () => ready,
        queued: () => pending,
        close: () => {
          if (client.isOpen) client.destroy();
        },
      };
    },
  };
}

const load = createRequire(__filename);
const ioredis6 = ioredis('ioredis 6', Redis6);
const nodeRedis6 = nodeRedis('node-redis 6', createClient6, true);
const iovalkey = (): ClientLibrary => ioredis('iovalkey', load('iovalkey').Redis);

/** The client libraries of which the tests are true: one of each driver, and in the whole matrix the others. */
export const clientLibraries: readonly ClientLibrary[] = matrix([ioredis6, nodeRedis6], () => [
  iovalkey(),
  ioredis('ioredis 5', load('ioredis5').Redis),
  nodeRedis('node-redis 5', load('redis5').createClient, false),
]);

/** Those that faults are played with: the newest of each library. node-redis 5 may hang if it loses a connection that opens. */
export const clientLibrariesForFaults: readonly ClientLibrary[] = matrix([ioredis6], () => [nodeRedis6, iovalkey()]);
