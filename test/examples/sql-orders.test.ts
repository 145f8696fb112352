import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import type { LockStore } from 'reenlock';
import { CasStore, MySqlCas } from 'reenlock/mysql';
import { PostgresStore } from 'reenlock/postgres';
import { orderKey } from '../../examples/orders/key.ts';
import { startMariadb } from '../support/mysql/server.ts';
import { startPostgres } from '../support/postgres/server.ts';
import { until } from '../support/until.ts';
import { Example, ship, stopExamples } from './example.ts';

interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

/** A connection of the test to the database of the service. */
interface Database {
  readonly store: LockStore;
  query(sql: string): Promise<unknown>;
  end(): Promise<void>;
}

interface Service {
  readonly name: string;
  readonly example: string;
  /** Tells the example where its database is. */
  readonly variable: string;
  start(): Promise<Server>;
  connect(url: string): Database;
}

const services: readonly Service[] = [
  {
    name: 'PostgreSQL',
    example: 'postgres-orders',
    variable: 'DATABASE_URL',
    start: startPostgres,
    connect(url) {
      const pool = new Pool({ connectionString: url });
      const query = async (sql: string) => (await pool.query(sql)).rows;
      return { store: new PostgresStore({ pool }), query, end: () => pool.end() };
    },
  },
  {
    name: 'MariaDB',
    example: 'mysql-orders',
    variable: 'MYSQL_URL',
    start: startMariadb,
    connect(url) {
      const pool = createPool({ uri: url, supportBigNumbers: true, bigNumberStrings: true });
      const query = async (sql: string) => (await pool.query(sql))[0];
      return { store: new CasStore({ adapter: new MySqlCas({ pool }) }), query, end: () => pool.end() };
    },
  },
];

describe.each(services)('The order service on $name', ({ example: name, variable, start: startServer, connect }) => {
  let server: Server;
  let database: Database;
  beforeAll(async () => {
    server = await startServer();
    // A busy machine may take long to make its data.
  }, 60_000);
  beforeEach(() => {
    database = connect(server.url);
  });
  afterEach(async () => {
    await stopExamples();
    await database.end();
  });
  afterAll(() => server.stop());

  const start = () => Example.start(`${name}/server.ts`, { [variable]: server.url });
  const view = async (example: Example, id: string): Promise<unknown> =>
    (await fetch(example.url(`/orders/${id}`))).json();

  it('Two processes that start at the same time ship no unit twice', async () => {
    const examples = await Promise.all([start(), start()]);
    const requests = Array.from({ length: 24 }, (_, i) => ship(examples[i % 2]!, i % 3 === 0 ? '1' : '2'));
    const statuses = (await Promise.all(requests)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([...Array(10).fill(201), ...Array(14).fill(409)]);
    for (const id of ['1', '2']) expect(await view(examples[0]!, id)).toEqual({ shipped: 5, stock: 0 });
  });

  it('A holder that a newer one has overtaken ships nothing, and its transaction is undone', async () => {
    const example = await start();
    expect((await ship(example, '3')).status).toBe(201);
    const newer = '9007199254740991';
    await database.query(`UPDATE orders SET fence = ${newer} WHERE id = '3'`);
    const late = await ship(example, '3');
    expect([late.status, await late.text()]).toEqual([409, expect.stringContaining('newer holder')]);
    expect(await view(example, '3')).toEqual({ shipped: 1, stock: 4 });
    expect(await database.query("SELECT fence FROM orders WHERE id = '3'")).toEqual([{ fence: newer }]);
  });

  it('On SIGTERM it ends by itself, and leaves no order locked', async () => {
    const example = await start();
    const { store } = database;
    const holds = async (): Promise<number> => (await store.inspect(orderKey('4'))).holds.length;
    const answers = Array.from({ length: 20 }, () => ship(example, '4').catch(() => undefined));
    await until(holds, (count) => count > 0);
    example.kill('SIGTERM');
    expect(await example.exited).toMatchObject({ code: 0, stderr: '' });
    await Promise.all(answers);
    expect(await holds()).toBe(0);
  });
});
