import Redlock from 'redlock';
import { connect } from '../lib/connect.mjs';

const leaseMs = 30_000;

/** redlock on one server. Its default of 10 retries would give up within a scenario, so it retries for ever. */
export function create(settings = {}) {
  let client;
  let redlock;
  return {
    async setup({ redis }) {
      client = await connect(redis);
      redlock = new Redlock([client], { ...settings, retryCount: -1 });
    },
    lock: (key) => redlock.acquire([key], leaseMs),
    unlock: (lock) => lock.release(),
    close: () => client.quit(),
  };
}
