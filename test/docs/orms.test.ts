import { Client, type Pool } from 'pg';
import { configureLocks, type Locks, lock, runInTrace } from 'reenlock';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';
import { Workshop } from './workshop.ts';

const page = 'docs/guides/transactions.md';

/** What each file of the page exports: the library's `db`, and its use. */
interface Shop<T> {
  readonly db: T;
  deposit(id: string, cents: number): Promise<void>;
}
interface Library {
  readonly file: string;
  begin?(db: never): Promise<unknown>;
  end(db: never): Promise<unknown>;
}
interface Destroyed {
  initialize(): Promise<unknown>;
  destroy(): Promise<void>;
}

const libraries: readonly Library[] = [
  { file: 'with-pg.ts', end: (db: Pool) => db.end() },
  { file: 'with-knex.ts', end: (db: Destroyed) => db.destroy() },
  { file: 'with-drizzle.ts', end: (db: { $client: { end(): Promise<void> } }) => db.$client.end() },
  { file: 'with-typeorm.ts', begin: (db: Destroyed) => db.initialize(), end: (db: Destroyed) => db.destroy() },
];

describe.each(libraries)('The deposit in $file', ({ file, begin, end }) => {
  let postgres: PostgresServer;
  let admin: Client;
  let workshop: Workshop;
  let shop: Shop<never>;
  let locks: Locks;
  /** What happened, in its order. Of the library's statements those of a transaction. */
  let happened: string[];
  let beforeUpdate: ((client: Client) => Promise<unknown>) | undefined;

  beforeAll(async () => {
    postgres = await startPostgres();
    process.env.DATABASE_URL = postgres.url;
  });
  afterAll(async () => {
    delete process.env.DATABASE_URL;
    await postgres.stop();
  });

  beforeEach(async () => {
    admin = new Client({ connectionString: postgres.url });
    await admin.connect();
    await admin.query(`
      DROP TABLE IF EXISTS wallets;
      CREATE TABLE wallets (id text PRIMARY KEY, cents int NOT NULL, fence bigint NOT NULL DEFAULT 0);
      INSERT INTO wallets (id, cents) VALUES ('ann', 100)`);
    // A folder for each test, and so a module and a pool.
    workshop = new Workshop();
    workshop.add(page);
    shop = (await import(workshop.path(page, file))) as Shop<never>;
    await begin?.(shop.db);
    happened = [];
    beforeUpdate = undefined;
    locks = configureLocks();
    locks.on('granted', () => happened.push('lock'));
    locks.on('released', () => happened.push('release'));
    watchStatements();
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await locks.close();
    await end(shop.db);
    await admin.end();
    workshop.remove();
  });

  it('locks, begins, updates, commits and releases, in this order', async () => {
    await runInTrace(() => shop.deposit('ann', 30));
    expect(happened).toEqual(['lock', 'BEGIN', 'UPDATE', 'COMMIT', 'release']);
    expect(await wallet()).toEqual({ cents: 130 });
  });

  it('changes no row with the fence of a holder that has lost the lock to another one', async () => {
    beforeUpdate = async () => {
      await locks.forceRelease('wallet:ann');
      await runInTrace(() =>
        lock.run('wallet:ann', ({ fence }) => admin.query('UPDATE wallets SET cents = 99, fence = $1', [fence])),
      );
    };
    await expect(runInTrace(() => shop.deposit('ann', 30))).rejects.toThrow('newer fence');
    expect(happened).toEqual(['lock', 'BEGIN', 'lock', 'release', 'UPDATE', 'ROLLBACK']);
    expect(await wallet()).toEqual({ cents: 99 });
  });

  it('rejects if PostgreSQL ends its connection in the transaction, and the process goes on', async () => {
    beforeUpdate = async (client) => {
      beforeUpdate = undefined;
      // Not `once` of node:events, which listens for errors.
      const ended = new Promise<void>((resolve) => void client.once('end', resolve));
      await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'");
      await ended;
    };
    await expect(runInTrace(() => shop.deposit('ann', 30))).rejects.toThrow();
    expect(await wallet()).toEqual({ cents: 100 });
    await runInTrace(() => shop.deposit('ann', 5));
    expect(await wallet()).toEqual({ cents: 105 });
  });

  it('adds up over jobs that wait for each other, more of them than the pool has connections', async () => {
    await Promise.all(Array.from({ length: 24 }, () => runInTrace(() => shop.deposit('ann', 5))));
    expect(await wallet()).toEqual({ cents: 220 });
  });

  function watchStatements(): void {
    const query = Client.prototype.query as (...args: unknown[]) => unknown;
    jest.spyOn(Client.prototype, 'query').mockImplementation(function (this: Client, ...args: unknown[]) {
      const run = (): unknown => query.apply(this, args);
      if (this === admin) return run();
      const [statement] = args as [string | { text: string }];
      const text = typeof statement === 'string' ? statement : statement.text;
      const known = text.match(/^(begin|start transaction|update|commit|rollback)/i)?.[0].toUpperCase();
      const send = (): unknown => {
        if (known !== undefined) happened.push(known.replace('START TRANSACTION', 'BEGIN'));
        return run();
      };
      return known === 'UPDATE' && beforeUpdate !== undefined ? beforeUpdate(this).then(send) : send();
    } as never);
  }

  async function wallet(): Promise<unknown> {
    return (await admin.query("SELECT cents FROM wallets WHERE id = 'ann'")).rows[0];
  }
});
