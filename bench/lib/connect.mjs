import { Cluster, Redis } from 'ioredis';

/** A client of the benchmark's own Redis, ready for commands. */
export async function connect(port, Client = Redis) {
  const client = new Client({ host: '127.0.0.1', port, lazyConnect: true });
  await client.connect();
  return client;
}

/** As `connect`, with node-redis. */
export async function connectNodeRedis(port) {
  const { createClient } = await import('redis');
  return createClient({ socket: { host: '127.0.0.1', port } }).connect();
}

/** As `connect`, for a cluster. */
export async function connectCluster(port) {
  const client = new Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true });
  await client.connect();
  return client;
}
