import { connect } from '../lib/connect.mjs';

const leaseMs = 30_000;
const compareAndDelete = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** The least that several locks on Redis can cost: one pipeline of SET NX PX, one of compare-and-deletes. */
export function create() {
  let client;
  let sha;
  let lastToken = 0;
  return {
    async setup({ redis }) {
      client = await connect(redis);
      sha = await client.script('LOAD', compareAndDelete);
    },
    async lockAll(keys) {
      lastToken += 1;
      const token = `${process.pid}-${lastToken}`;
      const pipeline = client.pipeline();
      for (const key of keys) pipeline.set(key, token, 'PX', leaseMs, 'NX');
      expectAll(await pipeline.exec(), 'OK');
      return { keys, token };
    },
    async unlockAll({ keys, token }) {
      const pipeline = client.pipeline();
      for (const key of keys) pipeline.evalsha(sha, 1, key, token);
      expectAll(await pipeline.exec(), 1);
    },
    close: () => client.quit(),
  };
}

function expectAll(replies, expected) {
  for (const [error, reply] of replies)
    if (error !== null || reply !== expected) throw error ?? new Error(`Got ${reply}`);
}
