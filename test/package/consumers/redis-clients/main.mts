import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { Redis as Valkey } from 'iovalkey';
import { createClient } from 'redis';
import { RedisCas, RedisStore } from 'reenlock/redis';

// None of them connects here: what counts is that each compiles, and is taken for what it is.
const clients = [
  new Redis({ lazyConnect: true }),
  new Valkey({ lazyConnect: true }),
  createClient(),
  createClient({ RESP: 2 }),
];
for (const client of clients) {
  assert.equal(new RedisStore({ client }).link.isUp, false);
  assert.ok(new RedisCas({ client }));
}
console.log('ok');
