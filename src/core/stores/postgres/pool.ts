import type { Clock } from '../../base/clock.ts';

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
}

/** The part of a query result that is used. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
}

/** Settles as `reply` does, or rejects after `ms`: a pool is not trusted to settle. The reply clears the timer. */
export function inTime<T>(clock: Clock, ms: number, reply: Promise<T>, onLate: () => void = () => {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(ms, () => {
      onLate();
      reject(new Error(`Expected a reply within ${ms} ms, got none`));
    });
    reply.then(resolve, reject).finally(() => timer.cancel());
  });
}

/** Borrows a connection of the pool. One that comes after `ms` is released at once. */
export function borrow(pool: PostgresPool, clock: Clock, ms: number): Promise<PostgresPoolClient> {
  let isLate = false;
  // A pool may throw instead of rejecting.
  const connecting = (async () => pool.connect())();
  connecting.then(
    (client) => {
      if (isLate) client.release();
    },
    () => {}, // The promise below rejects with it, or has rejected already.
  );
  return inTime(clock, ms, connecting, () => {
    isLate = true;
  });
}
