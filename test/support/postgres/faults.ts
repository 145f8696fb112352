import { Pool, type PoolConfig } from 'pg';
import type { LockStore } from '../../../src/core/model/store.ts';
import type { StoreFault } from '../../../src/testing/contract/harness.ts';

/** Ways in which each call of a store on PostgreSQL fails. `query` is run by a user who may create roles. */
export function postgresFaults(
  port: () => number,
  query: (sql: string) => Promise<unknown>,
  storeOn: (pool: Pool) => LockStore,
): StoreFault[] {
  const broken = async (config: PoolConfig): ReturnType<StoreFault['create']> => {
    const pool = new Pool({ host: '127.0.0.1', ...config });
    return { store: storeOn(pool), close: () => pool.end() };
  };
  return [
    {
      name: 'nobody listens at the port',
      outcome: 'not-applied',
      create: () => broken({ port: 1 }),
    },
    {
      name: 'the user has no permission',
      outcome: 'not-applied',
      async create() {
        await query('DROP ROLE IF EXISTS weak');
        await query('CREATE ROLE weak LOGIN');
        return broken({ port: port(), user: 'weak', database: 'postgres' });
      },
    },
  ];
}
