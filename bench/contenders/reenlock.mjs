import { openReenlock } from '../lib/open-reenlock.mjs';
import { subscribers } from '../lib/subscribers.mjs';

/** This package at its defaults, except for the wait and `settings`. Each owner is a scope of its own. See `openReenlock` for `options`. */
export function create({ isOneByOne = false, hasRun = false, mode, subscriber, settings, ...options }) {
  const terms = mode === undefined ? undefined : { mode };
  let opened;
  let stop;
  const several = {
    lockAll: (keys) => opened.lock.acquireAll(keys),
    unlockAll: (batch) => batch.release(),
  };
  const oneByOne = {
    async lockAll(keys) {
      const holds = [];
      for (const key of keys) holds.push(await opened.lock.acquire(key));
      return holds;
    },
    async unlockAll(holds) {
      for (const hold of holds) await hold.release();
    },
  };
  return {
    async setup(ports) {
      opened = await openReenlock(ports, options, { waitMs: 600_000, ...settings });
      stop = await subscribers[subscriber]?.(opened, options.from);
    },
    asOwner: (run) => opened.runInTrace(run, { locks: opened.locks }),
    lock: (key) => opened.lock.acquire(key, terms),
    unlock: (hold) => hold.release(),
    cycle: hasRun
      ? (key) => opened.lock.run(key, nothing)
      : async (key) => {
          const hold = await opened.lock.acquire(key);
          await hold.release();
        },
    ...(isOneByOne ? oneByOne : several),
    async close() {
      stop?.();
      await opened.close();
    },
  };
}

function nothing() {}
