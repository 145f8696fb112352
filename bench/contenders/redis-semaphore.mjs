import { Mutex } from 'redis-semaphore';
import { connect } from '../lib/connect.mjs';

/** redis-semaphore's Mutex. Its default of 10 s to acquire could end within a scenario, so it is raised. */
export function create() {
  let client;
  return {
    async setup({ redis }) {
      client = await connect(redis);
    },
    async lock(key) {
      const mutex = new Mutex(client, key, { acquireTimeout: 600_000 });
      await mutex.acquire();
      return mutex;
    },
    unlock: (mutex) => mutex.release(),
    close: () => client.quit(),
  };
}
