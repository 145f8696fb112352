import { inBackground } from '../../core/base/safely.ts';
import type { LockStoreError } from '../../core/model/errors.ts';
import type { Reply } from './replies.ts';
import { format } from './sql/schema.ts';
import type { PostgresStatements, Statement } from './statements.ts';

/** One operation, as the SQL function `run` expects it. */
export interface Operation {
  /** `acquirePermit` is `acquire` with `permits`: SQL functions that know no permits refuse it. */
  readonly op: 'acquire' | 'acquirePermit' | 'renew' | 'release' | 'transfer' | 'force';
  readonly [field: string]: unknown;
}

interface PendingOperation {
  readonly operation: Operation;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: LockStoreError) => void;
}

/** How many operations one statement may contain. */
const maxBatch = 64;

/**
 * Sends the operations on locks. At any time at most one statement for each lock is on its way: the next statement takes the
 * operations that were asked for meanwhile, in their order. So a lock with many waiters uses one connection of the pool, and
 * the server does their work in one transaction.
 */
export class LockCalls {
  readonly #statements: PostgresStatements;
  readonly #sql: string;
  readonly #onReply: () => void;
  /** By lock: the operations of the next statement. Has an entry as long as a statement is on its way. */
  readonly #pending = new Map<string, PendingOperation[]>();

  /** `onReply` is called after each statement that succeeded. */
  constructor(statements: PostgresStatements, schema: string, onReply: () => void) {
    this.#statements = statements;
    this.#sql = `SELECT ${schema}.run($1, $2, $3)::text`;
    this.#onReply = onReply;
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
      inBackground(this.#work(id, first));
    });
  }

  /** Sends statements until no operation is pending. */
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
        this.#onReply();
      } catch (error) {
        // Without a connection no batch was taken, so each operation that is pending has failed.
        for (const { reject } of batch === queue ? queue.splice(0) : batch) reject(error as LockStoreError);
      }
    }
    this.#pending.delete(id);
  }
}
