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

/** A client of any library that tries its first connection once: the command fails at once. Later connections are retried. */
interface OpenClient {
  readonly client: RedisStoreOptions['client'] & {
    connect(): Promise<unknown>;
    on(event: 'error', listener: (error: Error) => void): unknown;
  };
  close(): void;
}

function openRedis(url: URL, prefix: string | undefined): OpenStore {
  const [name, library] = installed(['ioredis', 'redis', 'iovalkey']);
  let isConnected = false;
  const open = name === 'redis' ? openNodeRedis : openIoredis;
  const { client, close } = open(library, url, () => (isConnected ? reconnectMs : undefined));
  // Calls report their failures, but `connect` of ioredis only reports that the connection is closed.
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
    close: async () => close(),
  };
}

function openIoredis(library: object, url: URL, pauseMs: () => number | undefined): OpenClient {
  type Client = OpenClient['client'] & { disconnect(): void };
  const { Redis } = library as { Redis: new (url: string, options: object) => Client };
  const client = new Redis(url.href, { lazyConnect: true, retryStrategy: () => pauseMs() ?? null });
  return { client, close: () => client.disconnect() };
}

function openNodeRedis(library: object, url: URL, pauseMs: () => number | undefined): OpenClient {
  type Client = OpenClient['client'] & { destroy(): void; readonly isOpen: boolean };
  const { createClient } = library as { createClient: (options: object) => Client };
  const client = createClient({ url: url.href, socket: { reconnectStrategy: () => pauseMs() ?? false } });
  return { client, close: () => client.isOpen && client.destroy() };
}

type PostgresPool = PostgresStoreOptions['pool'] & {
  query(text: string): Promise<unknown>;
  end(): Promise<void>;
  on(event: 'error', listener: () => void): unknown;
};

function openPostgres(url: URL): OpenStore {
  const { Pool } = installed(['pg'])[1] as { Pool: new (options: object) => PostgresPool };
  const pool = new Pool({ connectionString: url.href });
  // Calls report their failures.
  pool.on('error', () => {});
  return {
    store: new PostgresStore({ pool }),
    // The pool listens to a connection during its own queries. The borrower must listen to a connection that it borrows.
    connect: async () => void (await pool.query('SELECT 1')),
    close: () => pool.end(),
  };
}

const reconnectMs = 1_000;

/** The first of these libraries in the application of the working directory, or else next to this package. */
function installed(names: readonly string[]): readonly [name: string, library: object] {
  for (const place of [join(process.cwd(), 'package.json'), __filename]) {
    for (const name of names) {
      try {
        return [name, createRequire(place)(name) as object];
      } catch (error) {
        if ((error as { code?: string }).code !== 'MODULE_NOT_FOUND') throw error;
      }
    }
  }
  throw new Error(`Expected \`${names.join('` or `')}\` to be installed, got none: npm install ${names[0]}`);
}
