import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { connect, connectCluster, connectNodeRedis } from './connect.mjs';

/**
 * Opens this package on a store: `createLocks`, `lock` and `runInTrace`, the `locks` and a `close`.
 *
 * `store` is `redis`, `cluster` or `node-redis` (the same store with these clients), `postgres`, `memory`, or an adapter for
 * `CasStore`: `redis-cas`, `postgres-cas` or `mysql-cas`. `from` is the folder of another checkout whose build is used, in place of this one's.
 * `settings` go to `createLocks`.
 */
export async function openReenlock(ports, { store: kind = 'redis', from }, settings) {
  const { createLocks, lock, runInTrace } = await loadReenlock('.', from);
  const { store, end } = await stores[kind](ports, from);
  const locks = createLocks({ store, ...settings });
  return {
    locks,
    lock,
    runInTrace,
    async close() {
      await locks.close();
      await end();
    },
  };
}

const stores = {
  async memory(_, from) {
    const { MemoryStore } = await loadReenlock('.', from);
    return { store: new MemoryStore(), end: async () => {} };
  },
  async redis({ redis }, from) {
    const { RedisStore } = await loadReenlock('redis', from);
    const client = await connect(redis);
    return { store: new RedisStore({ client }), end: () => client.quit() };
  },
  async cluster({ cluster }, from) {
    const { RedisStore } = await loadReenlock('redis', from);
    const client = await connectCluster(cluster);
    return { store: new RedisStore({ client }), end: () => client.quit() };
  },
  async 'node-redis'({ redis }, from) {
    const { RedisStore } = await loadReenlock('redis', from);
    const client = await connectNodeRedis(redis);
    return { store: new RedisStore({ client }), end: () => client.close() };
  },
  async postgres({ postgres }, from) {
    const { PostgresStore } = await loadReenlock('postgres', from);
    const pool = new pg.Pool({ host: '127.0.0.1', port: postgres, user: 'postgres', database: 'postgres' });
    // The functions of two builds stand side by side: of one schema, only those of the newer build would stay.
    const store = new PostgresStore({ pool, ...(from === undefined ? {} : { schema: 'before' }) });
    await store.migrate();
    return { store, end: () => pool.end() };
  },
  async 'redis-cas'({ redis }, from) {
    const { CasStore, RedisCas } = await loadReenlock('redis', from);
    const client = await connect(redis);
    const adapter = new RedisCas({ client });
    const end = async () => {
      adapter.close();
      await client.quit();
    };
    return { store: new CasStore({ adapter }), end };
  },
  async 'postgres-cas'({ postgres }, from) {
    const { CasStore, PostgresCas, postgresCasTable } = await loadReenlock('redis', from);
    const pool = new pg.Pool({ host: '127.0.0.1', port: postgres, user: 'postgres', database: 'postgres' });
    await pool.query(postgresCasTable());
    return { store: new CasStore({ adapter: new PostgresCas({ pool }) }), end: () => pool.end() };
  },
  async 'mysql-cas'({ mariadb: port }, from) {
    const { CasStore, MySqlCas, mysqlCasTable } = await loadReenlock('mysql', from);
    const pool = mysql.createPool({ host: '127.0.0.1', port, user: 'root', database: 'locks' });
    await pool.query(mysqlCasTable());
    return { store: new CasStore({ adapter: new MySqlCas({ pool }) }), end: () => pool.end() };
  },
};

/** Loads a subpath of this package, or of the build in another checkout's folder. */
export function loadReenlock(subpath, from) {
  const name = join('reenlock', subpath);
  // A package finds itself by its name: the files of the other checkout may lie elsewhere.
  return import(
    from === undefined ? name : pathToFileURL(createRequire(join(from, 'package.json')).resolve(name)).href
  );
}
