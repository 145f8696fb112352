import { type Clock, systemClock } from '../../core/base/clock.ts';
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
  TransferReply,
  TransferTerms,
  Unsubscribe,
} from '../../core/model/store.ts';
import { checkOptions, milliseconds, type Rule } from '../../core/model/validate.ts';
import { PostgresChannel } from './channel.ts';
import { PostgresEdges } from './edges.ts';
import type { PostgresListener } from './listen-session.ts';
import { LockCalls, type Operation } from './lock-calls.ts';
import { migrate, schemaName } from './migration.ts';
import { type PostgresPool, pgPool } from './pool.ts';
import {
  type Reply,
  readAcquire,
  readInspect,
  readList,
  readMessages,
  readRelease,
  readRenew,
  readServer,
  readTransfer,
} from './replies.ts';
import { defaultSchema, format } from './sql/schema.ts';
import { serverName } from './sql/server-name.ts';
import { PostgresStatements } from './statements.ts';
import { Sweeper } from './sweeper.ts';

const capabilities = {
  queue: true,
  handOff: true,
  modes: true,
  permits: true,
  shared: true,
  minFence: true,
  edges: true,
  transfer: true,
};

/** The options of a `PostgresStore`. */
export interface PostgresStoreOptions {
  /** A `Pool` of the pg package, connected to the primary. It is neither changed nor closed. */
  readonly pool: PostgresPool;
  /** The schema for the locks alone, in lower case. Default `reenlock`. */
  readonly schema?: string | undefined;
  /**
   * How to connect for `LISTEN`, if not as the pool does: a connection string or the options of a `Client`, for example to
   * connect to the same database without PgBouncer. With `false` no such connection is opened, and waiters only poll.
   */
  readonly listen?: string | object | false | undefined;
  /**
   * How long a statement may take, in milliseconds. Then it fails, and its connection is closed. Default 2 000, like
   * `storeTimeoutMs` of the `Locks`.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * How long the last fence of a key is remembered after its last use, in milliseconds, and at most 600 000 longer: as long as
   * that, fences rise even if the server's clock is set back. The process with the least counts. 60 000 at least, default
   * 3 600 000.
   */
  readonly recordTtlMs?: number | undefined;
}

/**
 * Keeps locks in a PostgreSQL database, 12 or newer, for any number of processes. Each operation is one statement on the pool. Grants
 * arrive by `NOTIFY`, on one connection for each process. The store opens that connection, and closes it when the last `Locks` on it
 * is closed. It never closes your pool. `migrate()` creates the schema. Throws `LockConfigError` for bad options. Its calls reject
 * with `LockStoreError`.
 *
 * @example
 * ```ts
 * import { Pool } from 'pg';
 * import { configureLocks } from 'reenlock';
 * import { PostgresStore } from 'reenlock/postgres';
 *
 * const store = new PostgresStore({ pool: new Pool({ connectionString: process.env.DATABASE_URL }) });
 * await store.migrate();
 * const locks = configureLocks({ store });
 * ```
 */
export class PostgresStore implements LockStore {
  readonly edges: EdgeStore;
  readonly #pool: PostgresPool;
  readonly #schema: string;
  readonly #statements: PostgresStatements;
  readonly #calls: LockCalls;
  readonly #channel: PostgresChannel;
  /** How many acquires of a request have no reply and may still reach the server. Each statement is sent once. */
  readonly #unsettled = new WeakMap<HoldRequest, number>();

  constructor(options: PostgresStoreOptions) {
    const given = checkOptions(options, rules, 'PostgresStore', 'pool');
    const { pool, schema = defaultSchema, listen, timeoutMs = 2_000, recordTtlMs = 3_600_000 } = given;
    const clock: Clock = systemClock;
    this.#pool = pool;
    this.#schema = schema;
    this.#statements = new PostgresStatements(pool, clock, timeoutMs);
    const sweeper = new Sweeper(this.#statements, schema, clock, recordTtlMs);
    this.#calls = new LockCalls(this.#statements, clock, schema, () => sweeper.afterCall());
    this.edges = new PostgresEdges(this.#statements, schema);
    const host = {
      connect: listen === false ? undefined : () => createListener(pool, listen),
      notify: async (channel: string, message: string) => {
        const [server] = await this.#ask('subscribe', `${serverName} FROM pg_notify($1, $2)`, channel, message);
        return String(server);
      },
    };
    this.#channel = new PostgresChannel(host, schema, timeoutMs, clock);
  }

  /** Without `LISTEN`, the server does not know which processes can be reached. */
  get capabilities(): StoreCapabilities {
    const reachability = !this.#channel.isPollingOnly;
    return { ...capabilities, reachability };
  }

  /**
   * Creates the schema, or updates it to this version. Does nothing if it is up to date. Any number of processes may call it at the same
   * time. Rejects with `LockStoreError`, also if the schema has a format that this version does not know.
   *
   * @example
   * ```ts
   * import { Pool } from 'pg';
   * import { PostgresStore } from 'reenlock/postgres';
   *
   * const pool = new Pool({ connectionString: process.env.DATABASE_URL });
   * await new PostgresStore({ pool }).migrate();
   * ```
   */
  migrate(): Promise<void> {
    return migrate(this.#pool, this.#schema);
  }

  async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const { mode, permits, claimMs, priority } = request;
    const newest = terms.newest && identityOf(terms.newest);
    const polls = this.#channel.isPollingOnly;
    const operation = { ...identityOf(request), mode, permits, claimMs, priority, ...terms, newest, polls };
    this.#unsettled.set(request, (this.#unsettled.get(request) ?? 0) + 1);
    try {
      const reply = await this.#run(request.id, { op: 'acquire', ...operation });
      const mayArriveLater = this.#settle(request) > 0;
      // Its messages come from the server where it waits.
      this.#channel.follow(readServer(reply));
      return { ...readAcquire(request.holdId, reply), mayArriveLater };
    } catch (error) {
      // If it was not applied, it can't reach the server later.
      if ((error as { outcome?: unknown }).outcome === 'not-applied') this.#settle(request);
      throw error;
    }
  }

  async renew(request: HoldRequest, { fence, leaseMs }: RenewTerms): Promise<RenewReply> {
    return readRenew(await this.#run(request.id, { op: 'renew', ...identityOf(request), fence, leaseMs }));
  }

  async release(request: HoldRequest, { tombstoneMs, announce = false }: ReleaseTerms): Promise<ReleaseReply> {
    return readRelease(await this.#run(request.id, { op: 'release', ...identityOf(request), tombstoneMs, announce }));
  }

  async transfer(from: HoldRequest, to: HoldRequest, terms: TransferTerms): Promise<TransferReply> {
    const { mode, permits, holdId } = to;
    const operation = { ...identityOf(to), mode, permits, fromHold: from.holdId, fromOwner: from.owner, ...terms };
    return readTransfer(holdId, await this.#run(to.id, { op: 'transfer', ...operation }));
  }

  async inspect(id: string): Promise<InspectReply> {
    return readInspect(await this.#read('inspect', 'inspect($1, $2)', id));
  }

  async forceRelease(id: string, fence: number): Promise<boolean> {
    const [isDone] = await this.#run(id, { op: 'force', fence });
    return isDone === true;
  }

  /** Lists the locks by name; a cursor is the name of the last one. */
  async list({ idPrefix, limit, cursor = '' }: ListRequest): Promise<ListReply> {
    return readList(await this.#read('list', 'list($1, $2, $3, $4)', idPrefix, cursor, limit));
  }

  subscribe(process: string, listener: StoreListener, options?: SubscribeOptions): Promise<Unsubscribe> {
    return this.#channel.subscribe(process, listener, options);
  }

  /** Counts an acquire as settled. Returns how many acquires of the same request may still reach the server. */
  #settle(request: HoldRequest): number {
    const left = (this.#unsettled.get(request) ?? 1) - 1;
    this.#unsettled.set(request, left);
    return left;
  }

  async #run(id: string, operation: Operation): Promise<Reply> {
    const reply = await this.#calls.run(id, operation);
    if (this.#channel.isPollingOnly)
      for (const [process, message] of readMessages(reply)) this.#channel.deliver(process, message);
    return reply;
  }

  /** Calls an SQL function that returns JSON. */
  async #read(operation: string, call: string, ...values: unknown[]): Promise<Reply> {
    const [reply] = await this.#ask(operation, `${this.#schema}.${call}::text`, format, ...values);
    return JSON.parse(String(reply)) as Reply;
  }

  #ask(operation: string, call: string, ...values: unknown[]): Promise<readonly unknown[]> {
    return this.#statements.run({ operation, text: `SELECT ${call}`, values: () => values });
  }
}

const listening: Rule = {
  expected: 'a connection string or the options of a Client of the pg package, or false',
  accepts: (value) =>
    value === false || (typeof value === 'string' && value !== '') || (typeof value === 'object' && value !== null),
};

const rules = {
  pool: pgPool('connect', 'query', 'Client'),
  schema: schemaName,
  listen: listening,
  timeoutMs: milliseconds(),
  recordTtlMs: milliseconds(60_000),
};

/** The names of a hold or waiter in the SQL functions. */
function identityOf({ holdId: hold, owner, process }: HoldRequest): { hold: string; owner: string; process: string } {
  return { hold, owner, process };
}

/** Creates a client that connects as the pool's clients do, or with the option `listen`. */
function createListener(pool: PostgresPool, listen: string | object | undefined): PostgresListener {
  const { Client, options } = pool as unknown as {
    readonly Client: new (config: object) => PostgresListener;
    readonly options: { readonly password?: unknown };
  };
  const given = typeof listen === 'string' ? { connectionString: listen } : (listen ?? options);
  const { password } = given as { readonly password?: unknown };
  // The pool's password is not enumerable, so the copy below lacks it.
  const secret = password === undefined ? {} : { password };
  return new Client({ fallback_application_name: 'reenlock', keepAlive: true, ...given, ...secret });
}
