import { createPool, type Pool } from 'mysql2/promise';
import { CasStore, MySqlCas } from 'reenlock/mysql';
import { orderKey } from '../../examples/orders/key.ts';
import { type MariadbServer, startMariadb } from '../support/mysql/server.ts';
import { watchLeaks } from '../support/processes/leaks.ts';
import { until } from '../support/until.ts';
import { Example, ship, stopExamples } from './example.ts';

watchLeaks();

describe('The order service on MariaDB', () => {
  let server: MariadbServer;
  let pool: Pool;
  beforeAll(async () => {
    server = await startMariadb();
    // A busy machine may take long to make the data.
  }, 60_000);
  beforeEach(() => {
    pool = createPool(server.url);
  });
  afterEach(async () => {
    await stopExamples();
    await pool.end();
  });
  afterAll(() => server.stop());

  const start = () => Example.start('mysql-orders/server.ts', { MYSQL_URL: server.url });
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
    const newer = 9_007_199_254_740_991;
    await pool.query("UPDATE orders SET fence = ? WHERE id = '3'", [newer]);
    const late = await ship(example, '3');
    expect([late.status, await late.text()]).toEqual([409, expect.stringContaining('newer holder')]);
    expect(await view(example, '3')).toEqual({ shipped: 1, stock: 4 });
    const [rows] = await pool.query("SELECT fence FROM orders WHERE id = '3'");
    expect(rows).toEqual([{ fence: newer }]);
  });

  it('On SIGTERM it ends by itself, and leaves no order locked', async () => {
    const example = await start();
    const store = new CasStore({ adapter: new MySqlCas({ pool }) });
    const holds = async (): Promise<number> => (await store.inspect(orderKey('4'))).holds.length;
    const answers = Array.from({ length: 20 }, () => ship(example, '4').catch(() => undefined));
    await until(holds, (count) => count > 0);
    example.kill('SIGTERM');
    expect(await example.exited).toMatchObject({ code: 0, stderr: '' });
    await Promise.all(answers);
    expect(await holds()).toBe(0);
  });
});
