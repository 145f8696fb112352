import { EventEmitter, once } from 'node:events';
import { PGlite } from '@electric-sql/pglite';
import { configureLocks, getLock, type Hold, runInTrace } from 'reenlock';
import { orderKey } from '../orders/key.ts';

/**
 * A lease can end while its holder is paused (a long garbage collection, a frozen machine), and no lock can stop the
 * write that the holder sends when it wakes. The row can: it keeps the greatest fence that ever came to it. The read shows
 * its fence as well: else a late write could come between the read and the write of a newer holder, and be written over.
 */
const claim = `
  UPDATE stock SET fence = $1
   WHERE order_id = $2 AND fence <= $1
  RETURNING units`;

const update = `
  UPDATE stock SET units = $1, fence = $2
   WHERE order_id = $3 AND fence <= $2`;

async function main(): Promise<void> {
  const locks = configureLocks();
  const database = await PGlite.create();
  await database.exec(`
    CREATE TABLE stock (order_id text PRIMARY KEY, units int NOT NULL, fence bigint NOT NULL DEFAULT 0);
    INSERT INTO stock VALUES ('42', 10);
  `);
  const moments = new EventEmitter();
  const quickHasRead = once(moments, 'quick has read');

  const slow = runInTrace(async () => {
    // Nobody renews this lease, as if the process had stopped right after it was granted.
    const hold = await getLock(orderKey('42')).acquire({ leaseMs: 100, renew: false });
    const units = await read(database, 'slow', hold);
    await quickHasRead; // The pause: the lease ends, and the next worker is let in.
    await write(database, 'slow', hold, units - 1);
  });

  await runInTrace(() =>
    getLock(orderKey('42')).run(async (hold) => {
      const units = await read(database, 'quick', hold);
      moments.emit('quick has read');
      await slow; // The worst of moments for a late write: it would be lost.
      await write(database, 'quick', hold, units - 4);
    }),
  );

  const { rows } = await database.query<{ units: number }>('SELECT units FROM stock');
  console.log(`at the end: ${rows[0]!.units} units`);
  await database.close();
  await locks.close();
}

async function read(database: PGlite, who: string, hold: Hold): Promise<number> {
  const { rows } = await database.query<{ units: number }>(claim, [hold.fence, '42']);
  const [stock] = rows;
  if (stock === undefined) throw new Error('A newer holder has come');
  console.log(`${who}: reads ${stock.units} units, its fence is ${hold.fence}`);
  return stock.units;
}

async function write(database: PGlite, who: string, hold: Hold, units: number): Promise<void> {
  const { affectedRows } = await database.query(update, [units, hold.fence, '42']);
  const answer = affectedRows === 1 ? 'accepted' : 'refused, a newer holder has come';
  console.log(`${who}: writes ${units} units: ${answer}`);
}

void main();
