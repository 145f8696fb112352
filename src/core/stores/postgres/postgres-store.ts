import { type Clock, systemClock } from '../../base/clock.ts';
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
  Unsubscribe,
} from '../../model/store.ts';
import { checkOptions, milliseconds, objectWith, type Rule } from '../../model/validate.ts';
import { PostgresChannel } from './channel.ts';
import { PostgresEdges } from './edges.ts';
import type { PostgresListener } from './listen-session.ts';
import { LockCalls, type Operation } from './lock-calls.ts';
import { migrate, schemaName } from './migration.ts';
import type { PostgresPool } from './pool.ts';
import { type Reply, readAcquire, readInspect, readList, readRelease, readRenew, readTold } from './replies.ts';
import { defaultSchema, format } from './sql/schema.ts';
import { PostgresStatements } from './statements.ts';
import { Sweeper } from './sweeper.ts';

/** Which database keeps the locks, and where in it. */
export interface PostgresStoreOptions {
  /** A `Pool` of the pg package that leads to the primary; it is neither changed nor closed. */
  readonly pool: PostgresPool;
  /** The schema that keeps nothing but the locks, in lower case. Default `reenlock`. */
  readonly schema?: string | undefined;
  /**
   * How to connect for `LISTEN`, if not as the pool does: a connection string or the options of a `Client`, which lead past
   * PgBouncer to the same database; `false` to open no such connection, and live by polling.
   */
  readonly listen?: string | object | false | undefined;
  /** After so long without an answer, in milliseconds, a statement is given up and its connection closed. Default 5 000. */
  readonly timeoutMs?: number | undefined;
}

/**
 * Locks in a PostgreSQL database, 12 or newer, for any number of processes. Every operation is one statement on the pool;
 * grants come by `NOTIFY`, on one connection a process that the store opens beside the pool, and closes when the last
 * `Locks` on it is closed. `migrate()` makes its schema. Throws `LockConfigError` for bad options; its calls reject with
 * `LockStoreError`.
 */
export class PostgresStore implements LockStore {
  readonly edges: EdgeStore;
  readonly #pool: PostgresPool;
  readonly #schema: string;
  readonly #statements: PostgresStatements;
  readonly #calls: LockCalls;
  readonly #channel: PostgresChannel;
  /** How many acquires of a request may still reach the server: those without an answer. A statement is sent once. */
  readonly #unsettled = new WeakMap<HoldRequest, number>();

  constructor(options: PostgresStoreOptions) {
    const given = checkOptions(options, rules, 'PostgresStore', 'pool');
    const { pool, schema = defaultSchema, listen, timeoutMs = 5_000 } = given;
    const clock: Clock = systemClock;
    this.#pool = pool;
    this.#schema = schema;
    this.#statements = new PostgresStatements(pool, clock, timeoutMs);
    const sweeper = new Sweeper(this.#statements, schema, clock);
    this.#calls = new LockCalls(this.#statements, schema, () => sweeper.called());
    this.edges = new PostgresEdges(this.#statements, schema);
    const host = {
      connect: listen === false ? undefined : () => createListener(pool, listen),
      notify: (channel: string, message: string) => this.#ask('subscribe', 'pg_notify($1, $2)', channel, message),
    };
    this.#channel = new PostgresChannel(host, schema, timeoutMs, clock);
  }

  /** Without `LISTEN`, nobody can tell that a process is not reached. */
  get capabilities(): StoreCapabilities {
    const reachability = !this.#channel.isDeaf;
    return { queue: true, handOff: true, reachability, modes: true, shared: true, minFence: true, edges: true };
  }

  /**
   * Makes the schema, or brings it to this version; does nothing where it is. Any number of processes may do so at the same
   * time. Rejects with a `LockStoreError`, also where the schema is of a format that this version does not know.
   */
  migrate(): Promise<void> {
    return migrate(this.#pool, this.#schema);
  }

  async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const { mode, claimMs, priority } = request;
    const operation = { op: 'acquire', ...namesOf(request), mode, claimMs, priority, ...terms } as const;
    this.#unsettled.set(request, (this.#unsettled.get(request) ?? 0) + 1);
    try {
      const reply = await this.#run(request.id, { ...operation, polls: this.#channel.isDeaf });
      const mayArriveLater = this.#settle(request) > 0;
      return { ...readAcquire(request.holdId, reply), mayArriveLater };
    } catch (error) {
      // If it was not applied, it is not on its way any more.
      if ((error as { outcome?: unknown }).outcome === 'not-applied') this.#settle(request);
      throw error;
    }
  }

  async renew(request: HoldRequest, { fence, leaseMs }: RenewTerms): Promise<RenewReply> {
    return readRenew(await this.#run(request.id, { op: 'renew', ...namesOf(request), fence, leaseMs }));
  }

  async release(request: HoldRequest, { tombstoneMs, announce = false }: ReleaseTerms): Promise<ReleaseReply> {
    return readRelease(await this.#run(request.id, { op: 'release', ...namesOf(request), tombstoneMs, announce }));
  }

  async inspect(id: string): Promise<InspectReply> {
    return readInspect(await this.#read('inspect', 'inspect($1, $2)', id));
  }

  async forceRelease(id: string, fence: number): Promise<boolean> {
    const [isDone] = await this.#run(id, { op: 'force', fence });
    return isDone === true;
  }

  /** In the order of their names, which is the cursor's, too. */
  async list({ idPrefix, limit, cursor = '' }: ListRequest): Promise<ListReply> {
    return readList(await this.#read('list', 'list($1, $2, $3, $4)', idPrefix, cursor, limit));
  }

  subscribe(process: string, listener: StoreListener, options?: SubscribeOptions): Promise<Unsubscribe> {
    return this.#channel.subscribe(process, listener, options);
  }

  /** An acquire is over; returns how many of the same request may still arrive. */
  #settle(request: HoldRequest): number {
    const left = (this.#unsettled.get(request) ?? 1) - 1;
    this.#unsettled.set(request, left);
    return left;
  }

  async #run(id: string, operation: Operation): Promise<Reply> {
    const reply = await this.#calls.run(id, operation);
    if (this.#channel.isDeaf) for (const [process, message] of readTold(reply)) this.#channel.deliver(process, message);
    return reply;
  }

  /** Calls a function that returns JSON. */
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
  pool: objectWith('a Pool of the pg package', 'connect', 'query', 'Client'),
  schema: schemaName,
  listen: listening,
  timeoutMs: milliseconds(1),
};

/** What tells a hold or a waiter from others. */
function namesOf({ holdId: hold, owner, process }: HoldRequest): { hold: string; owner: string; process: string } {
  return { hold, owner, process };
}

/** A client that connects as those of the pool do, or as it is told. */
function createListener(pool: PostgresPool, listen: string | object | undefined): PostgresListener {
  const { Client, options } = pool as unknown as {
    readonly Client: new (config: object) => PostgresListener;
    readonly options: { readonly password?: unknown };
  };
  const given = typeof listen === 'string' ? { connectionString: listen } : (listen ?? options);
  const { password } = given as { readonly password?: unknown };
  // A pool keeps its password where no log prints it, and a copy misses it.
  const secret = password === undefined ? {} : { password };
  return new Client({ fallback_application_name: 'reenlock', keepAlive: true, ...given, ...secret });
}
