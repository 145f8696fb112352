import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { LockStore } from '../core/index.ts';
import { PostgresStore, type PostgresStoreOptions } from '../stores/postgres.ts';
import { RedisStore, type RedisStoreOptions } from '../stores/redis.ts';
import type { BoardArguments } from './arguments.ts';

/** A store at a URL, and the connection that was opened for it. */
export interface OpenStore {
  readonly store: LockStore;
  /** Rejects if the server can't be reached. */
  connect(): Promise<void>;
  close(): Promise<void>;
}

/** Opens a store, with the client library that the user has installed. Throws if there is none. */
export function openStore({ url, prefix }: BoardArguments): OpenStore {
  return url.protocol.startsWith('redis') ? openRedis(url, prefix) : openPostgres(url);
}

type RedisClient = RedisStoreOptions['client'] & {
  connect(): Promise<void>;
  disconnect(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
};

function openRedis(url: URL, prefix: string | undefined): OpenStore {
  const { Redis } = installed<{ Redis: new (url: string, options: object) => RedisClient }>('ioredis');
  let isConnected = false;
  // The first connection is made once: the command says at once that it fails. Later ones are made again.
  const retryStrategy = (): number | null => (isConnected ? reconnectMs : null);
  const client = new Redis(url.href, { lazyConnect: true, retryStrategy });
  // Calls report their failures; but `connect` only says that the connection is closed.
  let reason: Error | undefined;
  client.on('error', (error) => {
    reason = error;
  });
  return {
    store: new RedisStore(prefix === undefined ? { client } : { client, prefix }),
    async connect() {
      await client.connect().catch((error: Error) => {
        throw reason ?? error;
      });
      isConnected = true;
    },
    close: async () => client.disconnect(),
  };
}

type PostgresPool = PostgresStoreOptions['pool'] & {
  query(text: string): Promise<unknown>;
  end(): Promise<void>;
  on(event: 'error', listener: () => void): unknown;
};

function openPostgres(url: URL): OpenStore {
  const { Pool } = installed<{ Pool: new (options: object) => PostgresPool }>('pg');
  const pool = new Pool({ connectionString: url.href });
  // Calls report their failures.
  pool.on('error', () => {});
  return {
    store: new PostgresStore({ pool }),
    // The pool listens to its connection while it queries. A connection that is lent is the borrower's to listen to.
    connect: async () => void (await pool.query('SELECT 1')),
    close: () => pool.end(),
  };
}

const reconnectMs = 1_000;

/** The library that the application in the working directory uses, or that is installed beside this package. */
function installed<T>(name: string): T {
  for (const place of [join(process.cwd(), 'package.json'), __filename]) {
    try {
      return createRequire(place)(name) as T;
    } catch (error) {
      if ((error as { code?: string }).code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  throw new Error(`Expected \`${name}\` to be installed, got none: npm install ${name}`);
}
