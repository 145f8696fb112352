import type { Clock, Timer } from '../../core/base/clock.ts';
import { inBackground } from '../../core/base/safely.ts';
import type { LockStoreError } from '../../core/model/errors/failures.ts';
import type { Reply } from './replies.ts';
import { format } from './sql/schema.ts';
import type { PostgresStatements, Statement } from './statements.ts';

/** One operation, as the SQL function `run` expects it. */
export interface Operation {
  readonly op: 'acquire' | 'renew' | 'release' | 'transfer' | 'force';
  readonly [field: string]: unknown;
}

interface PendingOperation {
  readonly operation: Operation;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: LockStoreError) => void;
}

/** How many operations one statement may contain. */
const maxBatch = 64;
/** After this time without a reply, a statement no longer holds up the next one: its connection may be broken. */
const lateMs = 500;
/** How many statements of one lock may be in flight at once. */
const maxStatements = 3;

/** The calls of one lock. */
interface Line {
  /** The operations of the next statement. */
  readonly pending: PendingOperation[];
  /** How many statements are in flight, and how many of them are late. */
  onTheirWay: number;
  late: number;
}

/**
 * Sends the operations on locks. At any time one statement for each lock is in flight, or waits for a connection: the next
 * statement takes the operations that arrived meanwhile, in order. A lock with many waiters thus uses one connection of the
 * pool, and the server does their work in one transaction. The next statement overtakes a late one: the operations are safe in
 * any order, since each names its hold id.
 */
export class LockCalls {
  readonly #statements: PostgresStatements;
  readonly #clock: Clock;
  readonly #sql: string;
  readonly #onReply: () => void;
  /** By lock. Has an entry while a statement is in flight. */
  readonly #lines = new Map<string, Line>();

  /** `onReply` is called after each statement that succeeded. */
  constructor(statements: PostgresStatements, clock: Clock, schema: string, onReply: () => void) {
    this.#statements = statements;
    this.#clock = clock;
    this.#sql = `SELECT ${schema}.run($1, $2, $3)::text`;
    this.#onReply = onReply;
  }

  /** Rejects with a `LockStoreError`. */
  run(id: string, operation: Operation): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const line = this.#lines.get(id) ?? { pending: [], onTheirWay: 0, late: 0 };
      this.#lines.set(id, line);
      line.pending.push({ operation, resolve, reject });
      this.#next(id, line);
    });
  }

  /** Sends the next statement, if there are operations and it is its turn. */
  #next(id: string, line: Line): void {
    if (line.pending.length > 0 && line.onTheirWay === line.late && line.onTheirWay < maxStatements) {
      inBackground(this.#send(id, line));
    } else if (line.onTheirWay === 0) {
      this.#lines.delete(id);
    }
  }

  async #send(id: string, line: Line): Promise<void> {
    let batch: readonly PendingOperation[] = line.pending;
    let isLate = false;
    let timer: Timer | undefined;
    const statement: Statement = {
      text: this.#sql,
      get operation(): string {
        return [...new Set(batch.map(({ operation }) => operation.op))].join(' and ');
      },
      values: () => {
        batch = line.pending.splice(0, maxBatch);
        // Started when there is a connection, cleared by the reply.
        timer = this.#clock.after(lateMs, () => {
          isLate = true;
          line.late += 1;
          this.#next(id, line);
        });
        return [format, id, JSON.stringify(batch.map(({ operation }) => operation))];
      },
    };
    line.onTheirWay += 1;
    try {
      const [reply] = await this.#statements.run(statement);
      const replies = JSON.parse(String(reply)) as Reply[];
      for (const [index, { resolve }] of batch.entries()) resolve(replies[index] as Reply);
      this.#onReply();
    } catch (error) {
      // Without a connection no batch was taken: each pending operation has failed.
      for (const { reject } of batch === line.pending ? line.pending.splice(0) : batch) reject(error as LockStoreError);
    }
    timer?.cancel();
    line.onTheirWay -= 1;
    if (isLate) line.late -= 1;
    this.#next(id, line);
  }
}
