import pg from 'pg';

const maxConnections = 20;
const leaseMs = 30_000;
const acquire = 'SELECT pg_advisory_lock(hashtextextended($1, 0))';
const release = 'SELECT pg_advisory_unlock(hashtextextended($1, 0)) AS was_held';

/**
 * A lease held by an advisory lock of PostgreSQL, with `pg`. The lock belongs to a connection: each holder and each waiter
 * needs one, and they come from a pool. PostgreSQL queues the waiters and hands the lock over. The lease is
 * `idle_session_timeout`: the server closes a connection that was idle for longer, and so releases its lock.
 */
export function create() {
  let pool;
  return {
    async setup({ postgres: port }) {
      const options = `-c idle_session_timeout=${leaseMs}`;
      const server = { host: '127.0.0.1', port, user: 'postgres', database: 'postgres' };
      pool = new pg.Pool({ ...server, options, max: maxConnections, idleTimeoutMillis: 0 });
      // A connection that the server closed while it was in the pool: the pool has removed it already.
      pool.on('error', () => {});
    },
    async lock(key) {
      const client = await pool.connect();
      await client.query({ name: 'acquire', text: acquire, values: [key] });
      return { client, key };
    },
    async unlock({ client, key }) {
      const { rows } = await client.query({ name: 'release', text: release, values: [key] });
      client.release();
      if (!rows[0].was_held) throw new Error(`${key} was not held`);
    },
    close: () => pool.end(),
  };
}
