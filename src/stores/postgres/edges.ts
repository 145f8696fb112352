import type { EdgeStore, HoldRequest, WaitEdge, WaitReply } from '../../core/model/store.ts';
import { type Reply, readWait } from './replies.ts';
import { format } from './sql/schema.ts';
import type { PostgresStatements } from './statements.ts';

/** The edges of a `PostgresStore`, in a table. An edge is stored as text: its key may contain characters that `jsonb` refuses. */
export class PostgresEdges implements EdgeStore {
  readonly #statements: PostgresStatements;
  readonly #schema: string;

  constructor(statements: PostgresStatements, schema: string) {
    this.#statements = statements;
    this.#schema = schema;
  }

  async set(owner: string, edge: WaitEdge, ttlMs: number): Promise<void> {
    await this.#run('set_edge($1, $2, $3, $4, $5)', owner, edge.request.holdId, JSON.stringify(edge), ttlMs);
  }

  clear(owner: string, edge: WaitEdge): Promise<void> {
    return this.set(owner, edge, 0);
  }

  async of(owner: string): Promise<readonly WaitEdge[]> {
    const texts = await this.#run('edges_of($1, $2)', owner);
    return texts.map((text) => JSON.parse(String(text)) as WaitEdge);
  }

  async wait({ id, owner, holdId }: HoldRequest): Promise<WaitReply> {
    const [reply] = await this.#run('wait($1, $2, $3, $4)', id, owner, holdId);
    return readWait(JSON.parse(String(reply)) as Reply);
  }

  #run(call: string, ...values: unknown[]): Promise<readonly unknown[]> {
    const text = `SELECT ${this.#schema}.${call}::text`;
    return this.#statements.run({ operation: 'edges', text, values: () => [format, ...values] });
  }
}
