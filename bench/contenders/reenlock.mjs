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
    lockAll: (keys) => lock.acquireAll(keys),
    unlockAll: (batch) => batch.release(),
    async close() {
      await locks.close();
      await client.quit();
    },
  };
}

/** The same, with several keys taken one after the other. */
export function createOneByOne() {
  return {
    ...create(),
    async lockAll(keys) {
      const holds = [];
      for (const key of keys) holds.push(await lock.acquire(key));
      return holds;
    },
    async unlockAll(holds) {
      for (const hold of holds) await hold.release();
    },
  };
}
