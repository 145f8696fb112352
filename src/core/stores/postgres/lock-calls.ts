import type { LockStoreError } from '../../model/errors.ts';
import type { Reply } from './replies.ts';
import { format } from './sql/schema.ts';
import type { PostgresStatements, Statement } from './statements.ts';

/** One operation, as `run` takes it. */
export interface Operation {
  readonly op: 'acquire' | 'renew' | 'release' | 'force';
  readonly [field: string]: unknown;
}

interface PendingOperation {
  readonly operation: Operation;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: LockStoreError) => void;
}

/** So many operations go with one statement. */
const maxBatch = 64;

/**
 * Sends the operations on locks. Of one lock there is one statement on its way: what is asked for meanwhile goes with the
 * next one, in the order in which it was asked for. So a lock that many wait for keeps one connection of the pool, and the
 * server does all their work in one transaction.
 */
export class LockCalls {
  readonly #statements: PostgresStatements;
  readonly #sql: string;
  readonly #onSent: () => void;
  /** By lock, as long as a statement is on its way: what goes with the next one. */
  readonly #pending = new Map<string, PendingOperation[]>();

  /** `onSent` is called after each statement that was answered. */
  constructor(statements: PostgresStatements, schema: string, onSent: () => void) {
    this.#statements = statements;
    this.#sql = `SELECT ${schema}.run($1, $2, $3)::text`;
    this.#onSent = onSent;
  }

  /** Rejects with a `LockStoreError`. */
  run(id: string, operation: Operation): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const pending = { operation, resolve, reject };
      const queue = this.#pending.get(id);
      if (queue !== undefined) {
        queue.push(pending);
        return;
      }
      const first = [pending];
      this.#pending.set(id, first);
      void this.#work(id, first);
    });
  }

  /** Until nothing is pending. */
  async #work(id: string, queue: PendingOperation[]): Promise<void> {
    while (queue.length > 0) {
      let batch: readonly PendingOperation[] = queue;
      const statement: Statement = {
        text: this.#sql,
        get operation(): string {
          return [...new Set(batch.map(({ operation }) => operation.op))].join(' and ');
        },
        values: () => {
          batch = queue.splice(0, maxBatch);
          return [format, id, JSON.stringify(batch.map(({ operation }) => operation))];
        },
      };
      try {
        const [reply] = await this.#statements.run(statement);
        const replies = JSON.parse(String(reply)) as Reply[];
        for (const [index, { resolve }] of batch.entries()) resolve(replies[index] as Reply);
        this.#onSent();
      } catch (error) {
        // Without a connection, nothing was taken: all have waited for it in vain.
        for (const { reject } of batch === queue ? queue.splice(0) : batch) reject(error as LockStoreError);
      }
    }
    this.#pending.delete(id);
  }
}
