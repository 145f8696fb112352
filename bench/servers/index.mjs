import { startMariadb } from './mariadb.mjs';
import { startPostgres } from './postgres.mjs';
import { startCluster, startRedis } from './redis.mjs';

const start = { redis: startRedis, cluster: startCluster, postgres: startPostgres, mariadb: startMariadb };

/** Starts the servers of these kinds. One that is not installed is missing from the result. */
export async function startServers(kinds) {
  const servers = new Map();
  for (const kind of kinds) {
    const server = await start[kind]();
    if (server !== undefined) servers.set(kind, server);
  }
  const all = [...servers];
  return {
    has: (kind) => servers.has(kind),
    get: (kind) => servers.get(kind),
    ports: Object.fromEntries(all.map(([kind, { port }]) => [kind, port])),
    descriptions: [...new Set(all.map(([, { description }]) => description))],
    stop: () => Promise.all(all.map(([, server]) => server.stop())),
  };
}
