import assert from 'node:assert/strict';
import { Cluster, Redis } from 'ioredis';
import { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey';
import { createClient, createCluster, createSentinel } from 'redis';
import { RedisCas, RedisStore } from 'reenlock/redis';

// None of them connects here: what counts is that each compiles, and is taken for what it is.
const clients = [
  new Redis({ lazyConnect: true }),
  new Valkey({ lazyConnect: true }),
  createClient(),
  createClient({ RESP: 2 }),
  createSentinel({ name: 'main', sentinelRootNodes: [{ host: '127.0.0.1', port: 26379 }] }),
  createSentinel({ name: 'main', sentinelRootNodes: [], RESP: 2, nodeClientOptions: { password: 'secret' } }),
];
const node = { host: '127.0.0.1', port: 6379 };
const clusters = [
  new Cluster([node], { lazyConnect: true }),
  new ValkeyCluster([node], { lazyConnect: true }),
  createCluster({ rootNodes: [{ socket: node }] }),
  createCluster({ rootNodes: [], RESP: 2, useReplicas: true }),
];
for (const client of clients) {
  assert.equal(new RedisStore({ client }).link.isUp, false);
  assert.ok(new RedisCas({ client }));
}
for (const client of clusters) {
  assert.equal(new RedisStore({ client }).link.isUp, false);
  assert.throws(() => new RedisCas({ client }), /use `RedisStore` for a cluster/);
}
console.log('ok');
