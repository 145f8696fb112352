// What the fragments of the pages take for granted: a shop that runs. Exported, so that a fragment need not use all of it.
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import express, { type Express, type Request } from 'express';
import { Redis } from 'ioredis';
import { configureLocks, type Locks } from 'reenlock';
import { type Guard, lockOn, traceContext } from 'reenlock/express';
import { RedisStore } from 'reenlock/redis';

export const client: Redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
export const locks: Locks = configureLocks({ store: new RedisStore({ client, prefix: `shop-${process.pid}:` }) });
export const app: Express = express();
app.use(traceContext());
export const guard: Guard = lockOn((req: Request<{ id: string }>) => `order:${req.params.id}`);
export const server: Server = app.listen(0, '127.0.0.1');

export const claim = 'UPDATE stock SET fence = $1 WHERE order_id = $2 AND fence <= $1 RETURNING units';
export const update = 'UPDATE stock SET units = $1, fence = $2 WHERE order_id = $3 AND fence <= $2';
const stock = { units: 10, fence: 0 };
export const db = {
  /** A row of one order, which refuses an older fence. */
  async query(sql: string, values: readonly unknown[]): Promise<{ rowCount: number; rows: { units: number }[] }> {
    await sleep(1);
    const fence = Number(sql === claim ? values[0] : values[1]);
    if (fence < stock.fence) return { rowCount: 0, rows: [] };
    stock.fence = fence;
    if (sql === update) stock.units = Number(values[0]);
    return { rowCount: 1, rows: [{ units: stock.units }] };
  },
};
export const sendMails = (_id: string): Promise<void> => sleep(1);
export const ship = (_id: string, _fence: number): Promise<void> => sleep(1);
export const takeOne = (): Promise<void> => sleep(1);
