import type { Clock } from '../../core/base/clock.ts';
import { objectWith, type Rule } from '../../core/model/validate.ts';
import { lentInTime } from '../pool/no-connection.ts';

/** A pool of `mysql2/promise`, or of `mysql2`: the part that is used. */
export type MySqlPool = MySqlPromisePool | { promise(): MySqlPromisePool };

/** The part of a pool of `mysql2/promise` that is used. */
export interface MySqlPromisePool {
  getConnection(): Promise<MySqlConnection>;
}

/** The part of a pool's connection that is used. */
export interface MySqlConnection {
  query(options: object): Promise<[unknown, unknown]>;
  release(): void;
  destroy(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
}

/** The rule for an option that takes a pool. */
export const mysqlPool: Rule = objectWith('a pool of `createPool` of mysql2', 'getConnection');

/** A pool of `mysql2` has one of `mysql2/promise` in it. */
export function promisePool(pool: MySqlPool): MySqlPromisePool {
  return 'promise' in pool ? pool.promise() : pool;
}

/** The database that the connections of a pool have at first: the application may leave another one on them. */
export function databaseOf(pool: MySqlPool): string | undefined {
  const raw = 'pool' in pool ? pool.pool : pool;
  const { config } = raw as { config?: { connectionConfig?: { database?: string } } };
  return config?.connectionConfig?.database;
}

/** Borrows a connection. One that arrives after `ms` is returned at once. `returnConnection` returns it. */
export function borrow(pool: MySqlPromisePool, clock: Clock, ms: number): Promise<MySqlConnection> {
  return lentInTime(clock, ms, lent(pool), (late) => returnConnection(late, true));
}

async function lent(pool: MySqlPromisePool): Promise<MySqlConnection> {
  const connection = await pool.getConnection();
  // If the connection fails, its statement rejects as well; without a listener the event would end the process.
  connection.on('error', ignore);
  return connection;
}

/** Returns a connection to its pool, or closes it unless it is usable. */
export function returnConnection(connection: MySqlConnection, isUsable: boolean): void {
  if (isUsable) connection.release();
  else connection.destroy();
  // A connection that is closed may still fail.
  if (isUsable) connection.off('error', ignore);
}

function ignore(): void {}
