import { Pool } from 'pg';
import { createLocks, getLock, runInTrace } from 'reenlock';
import { PostgresStore } from 'reenlock/postgres';

// One process that takes a key again and again, in several lines of work, and each time adds one to a balance in three
// steps, as code below a lock does. Where two were inside at once, one of the additions would be lost.
const [url, name, lines, turns] = process.argv.slice(2) as [string, string, string, string];

async function main(): Promise<void> {
  const pool = new Pool({ connectionString: url });
  const locks = createLocks({
    store: new PostgresStore({ pool }),
    waitMs: 60_000,
    storeTimeoutMs: 20_000,
    claimMs: 20_000,
  });
  const turn = (): Promise<void> =>
    runInTrace(
      () =>
        getLock('hot').run(async ({ fence }) => {
          const { rows } = await pool.query<{ balance: number }>('SELECT balance FROM ledger');
          const next = Number(rows[0]?.balance) + 1;
          await pool.query('UPDATE ledger SET balance = $1', [next]);
          await pool.query('INSERT INTO turns (process, fence) VALUES ($1, $2)', [name, fence]);
        }),
      { locks },
    );
  const line = async (): Promise<void> => {
    for (let done = 0; done < Number(turns); done++) await turn();
  };
  await Promise.all(Array.from({ length: Number(lines) }, line));
  await locks.close();
  await pool.end();
}

void main();
