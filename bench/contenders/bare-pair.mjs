import { connect, connectCluster, connectNodeRedis } from '../lib/connect.mjs';

const leaseMs = 30_000;
const compareAndDelete = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** The least that a lock on Redis can cost: one SET NX PX, one compare-and-delete. It cannot wait. */
export function create({ library = 'ioredis' } = {}) {
  let calls;
  let sha;
  let lastToken = 0;

  /** Returns undefined if the key is held. */
  async function tryLock(key) {
    lastToken += 1;
    const token = `${process.pid}-${lastToken}`;
    const reply = await calls.setNew(key, token);
    return reply === 'OK' ? { key, token } : undefined;
  }

  return {
    async setup({ redis, cluster, client }) {
      calls = await libraries[library](library === 'cluster' ? cluster : redis, client);
      sha = await calls.load(compareAndDelete);
    },
    tryLock,
    async lock(key) {
      const handle = await tryLock(key);
      if (handle === undefined) throw new Error(`${key} is held`);
      return handle;
    },
    async unlock({ key, token }) {
      if ((await calls.run(sha, key, token)) !== 1) throw new Error(`${key} was not held`);
    },
    close: () => calls.close(),
  };
}

/** The calls of the pair with each client, as its documentation shows them. */
const libraries = {
  async ioredis(port, given) {
    const client = given ?? (await connect(port));
    return {
      load: (script) => client.script('LOAD', script),
      setNew: (key, token) => client.set(key, token, 'PX', leaseMs, 'NX'),
      run: (sha, key, token) => client.evalsha(sha, 1, key, token),
      close: () => client.quit(),
    };
  },
  async cluster(port) {
    const client = await connectCluster(port);
    const [node] = client.nodes('master');
    return { ...(await libraries.ioredis(port, client)), load: (script) => node.script('LOAD', script) };
  },
  async 'node-redis'(port) {
    const client = await connectNodeRedis(port);
    const expiration = { type: 'PX', value: leaseMs };
    return {
      load: (script) => client.scriptLoad(script),
      setNew: (key, token) => client.set(key, token, { condition: 'NX', expiration }),
      run: (sha, key, token) => client.evalSha(sha, { keys: [key], arguments: [token] }),
      close: () => client.close(),
    };
  },
};
