import { connect } from '../lib/connect.mjs';

const leaseMs = 30_000;
const compareAndDelete = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** The least that a lock on Redis can cost: one SET NX PX, one compare-and-delete. It cannot wait. */
export function create() {
  let client;
  let sha;
  let lastToken = 0;
  return {
    async setup({ port, client: given }) {
      client = given ?? (await connect(port));
      sha = await client.script('LOAD', compareAndDelete);
    },
    async lock(key) {
      lastToken += 1;
      const token = `${process.pid}-${lastToken}`;
      if ((await client.set(key, token, 'PX', leaseMs, 'NX')) !== 'OK') throw new Error(`${key} is held`);
      return { key, token };
    },
    async unlock({ key, token }) {
      if ((await client.evalsha(sha, 1, key, token)) !== 1) throw new Error(`${key} was not held`);
    },
    close: () => client.quit(),
  };
}
