import { EventEmitter } from 'node:events';
import type { PostgresPoolClient, PostgresResult } from '../../../src/stores/postgres/pool.ts';

/** A statement that a connection was sent. */
export interface Sent {
  readonly text: string;
  readonly values: readonly unknown[] | undefined;
  readonly connection: FakeConnection;
  answer(value: unknown): void;
  fail(error: unknown): void;
}

/** A connection that answers what a test says, and when it says so. */
export class FakeConnection extends EventEmitter implements PostgresPoolClient {
  /** How it was given back, if it was. */
  released: 'kept' | 'closed' | undefined;
  /** What pg says of its transaction. Undefined if this version does not say. */
  transaction: string | undefined = 'I';
  readonly #onSent: (sent: Sent) => void;

  constructor(onSent: (sent: Sent) => void) {
    super();
    this.#onSent = onSent;
  }

  query(text: string, values?: unknown[]): Promise<PostgresResult> {
    return new Promise((resolve, reject) => {
      const answer = (value: unknown): void => resolve({ rows: [{ value }] });
      this.#onSent({ text, values, connection: this, answer, fail: reject });
    });
  }

  getTransactionStatus(): string | null {
    return this.transaction ?? null;
  }

  release(destroy?: boolean): void {
    if (this.released !== undefined) throw new Error('Released twice');
    this.released = destroy ? 'closed' : 'kept';
  }
}

/** A pool whose connections a test hands out. */
export class FakePool {
  readonly connections: FakeConnection[] = [];
  readonly sent: Sent[] = [];
  /** Of each `connect` that was not answered yet. */
  readonly waiting: { lend(): FakeConnection; fail(error: unknown): void }[] = [];
  /** Whether it lends a connection at once. */
  isOpen = true;
  /** In which transaction each of the next connections is when it is lent: then none. */
  lendsIn: (string | undefined)[] = [];
  readonly options: object = {};
  /** What tells a pool from others. */
  readonly Client: object = class {};

  connect(): Promise<PostgresPoolClient> {
    const connection = new FakeConnection((sent) => void this.sent.push(sent));
    if (this.lendsIn.length > 0) connection.transaction = this.lendsIn.shift();
    this.connections.push(connection);
    if (this.isOpen) return Promise.resolve(connection);
    return new Promise((resolve, reject) => {
      const lend = (): FakeConnection => {
        resolve(connection);
        return connection;
      };
      this.waiting.push({ lend, fail: reject });
    });
  }

  query(): never {
    throw new Error('Not used');
  }
}
