import { type Clock, inTime } from '../../core/base/clock.ts';
import { describe, objectWith, type Rule } from '../../core/model/validate.ts';
import { lentInTime } from '../pool/no-connection.ts';
import { isLeftBehind } from './errors.ts';

/** The part of a `Pool` of the `pg` package that is used. */
export interface PostgresPool {
  connect(): Promise<PostgresPoolClient>;
}

/** The part of a connection that is used. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
}

/** The part of a pool's connection that is used. */
export interface PostgresPoolClient extends PostgresClient {
  release(destroy?: boolean): void;
  /** The state in the server's last reply: `I`, no transaction; `T`, one is open; `E`, one has failed. Since pg 8.21. */
  getTransactionStatus?(): string | null;
}

/** The part of a query result that is used. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
}

/** The rule for an option that takes a pool with these methods. pg 7 never connects on today's versions of Node. */
export function pgPool(...methods: readonly string[]): Rule {
  const pool = objectWith('a Pool of the pg package, 8 or newer', ...methods);
  return {
    ...pool,
    got: (value) => (isPg7(value) ? 'one of pg 7: npm install pg@latest' : describe(value)),
    accepts: (value) => pool.accepts(value) && !isPg7(value),
  };
}

/** A pool has no version, but since pg 8 it has `maxUses` in its options. */
function isPg7(pool: unknown): boolean {
  const { _pendingQueue, options } = Object(pool) as { _pendingQueue?: unknown; options?: unknown };
  return Array.isArray(_pendingQueue) && typeof options === 'object' && options !== null && !('maxUses' in options);
}

/**
 * Borrows a connection of the pool that has no open transaction, within `ms`. One that an earlier borrower has left in a
 * transaction is closed, since statements on it would be rolled back with that transaction. One that arrives later is returned at
 * once. `returnConnection` returns it.
 */
export async function borrow(pool: PostgresPool, clock: Clock, ms: number): Promise<PostgresPoolClient> {
  const endMs = clock.now().monoMs + ms;
  const leftMs = (): number => Math.max(endMs - clock.now().monoMs, 1);
  while (true) {
    const client = await lentInTime(clock, leftMs(), lent(pool), (late) => returnConnection(late, true));
    const status = transactionStatus(client);
    if (status === 'I') return client;
    let isIdle = false;
    try {
      isIdle = status === undefined && (await inTime(clock, leftMs(), askIfIdle(client)));
      if (isIdle) return client;
    } finally {
      if (!isIdle) returnConnection(client, false);
    }
  }
}

/**
 * Asks the server whether the connection is in no transaction: it refuses the `COMMIT` of a block in any transaction but the
 * block's own.
 */
export async function askIfIdle(client: PostgresClient): Promise<boolean> {
  try {
    await client.query('DO $$ BEGIN COMMIT; END $$');
    return true;
  } catch (error) {
    if (isLeftBehind(error)) return false;
    throw error;
  }
}

/** Returns a connection to its pool, which closes it unless it is usable. */
export function returnConnection(client: PostgresPoolClient, isUsable: boolean): void {
  client.release(!isUsable);
  client.off('error', ignore);
}

/** Whether the last statement on the connection was part of a transaction that is still open. False if pg does not report it. */
export function isInTransaction(client: PostgresPoolClient): boolean {
  return (transactionStatus(client) ?? 'I') !== 'I';
}

type Lent = (error: unknown, client?: PostgresPoolClient) => void;

/**
 * Connects with a callback: a pool of pg removes its listener of errors right before it calls back, so the borrower's listener
 * must be there when the call returns. Other pools may only have promises.
 */
function lent(pool: PostgresPool): Promise<PostgresPoolClient> {
  return new Promise((resolve, reject) => {
    const onLent: Lent = (error, client) => {
      if (client === undefined) {
        reject(error);
        return;
      }
      // If the connection fails, its statement rejects as well; without a listener the event would end the process.
      client.on('error', ignore);
      resolve(client);
    };
    const connect = pool.connect as (callback: Lent) => Promise<PostgresPoolClient> | undefined;
    connect.call(pool, onLent)?.then((client) => onLent(undefined, client), reject);
  });
}

function transactionStatus(client: PostgresPoolClient): string | undefined {
  try {
    return client.getTransactionStatus?.() ?? undefined;
  } catch {
    return undefined; // A version of pg-native that does not report it.
  }
}

function ignore(): void {}
