import type { Clock } from '../../base/clock.ts';

/** What is used of a `Pool` of the `pg` package. */
export interface PostgresPool {
  connect(): Promise<PostgresPoolClient>;
}

/** What is used of a connection. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
}

/** What is used of a connection that is lent by a pool. */
export interface PostgresPoolClient extends PostgresClient {
  release(destroy?: boolean): void;
}

/** What is used of the answer to a statement. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
}

/** What a pool that is not trusted to settle did in time; rejects where that is nothing. The timer is cleared by the answer. */
export function inTime<T>(clock: Clock, ms: number, answer: Promise<T>, onLate: () => void = () => {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(ms, () => {
      onLate();
      reject(new Error(`No answer within ${ms} ms`));
    });
    answer.then(resolve, reject).finally(() => timer.cancel());
  });
}

/** A connection of the pool; one that comes too late is released at once. */
export function borrow(pool: PostgresPool, clock: Clock, ms: number): Promise<PostgresPoolClient> {
  let isLate = false;
  // A pool of another make may throw.
  const connecting = (async () => pool.connect())();
  connecting.then(
    (client) => {
      if (isLate) client.release();
    },
    () => {}, // Rejected below, or too late for anybody.
  );
  return inTime(clock, ms, connecting, () => {
    isLate = true;
  });
}
