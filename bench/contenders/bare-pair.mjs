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

  /** Returns undefined if the key is held. */
  async function tryLock(key) {
    lastToken += 1;
    const token = `${process.pid}-${lastToken}`;
    const reply = await client.set(key, token, 'PX', leaseMs, 'NX');
    return reply === 'OK' ? { key, token } : undefined;
  }

  return {
    async setup({ redis, client: given }) {
      client = given ?? (await connect(redis));
      sha = await client.script('LOAD', compareAndDelete);
    },
    tryLock,
    async lock(key) {
      const handle = await tryLock(key);
      if (handle === undefined) throw new Error(`${key} is held`);
      return handle;
    },
    async unlock({ key, token }) {
      if ((await client.evalsha(sha, 1, key, token)) !== 1) throw new Error(`${key} was not held`);
    },
    close: () => client.quit(),
  };
}
