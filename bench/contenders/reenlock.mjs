import { createLocks, lock, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { connect } from '../lib/connect.mjs';

/** This package, at its defaults but for the wait; every owner is a scope of its own. */
export function create() {
  let client;
  let locks;
  return {
    async setup({ port }) {
      client = await connect(port);
      locks = createLocks({ store: new RedisStore({ client }), waitMs: 600_000 });
    },
    asOwner: (run) => runInTrace(run, { locks }),
    lock: (key) => lock.acquire(key),
    unlock: (hold) => hold.release(),
    async close() {
      await locks.close();
      await client.quit();
    },
  };
}
