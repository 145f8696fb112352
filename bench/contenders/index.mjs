/**
 * The locks that are compared. Each has the same shape:
 * `setup({ port })`, `lock(key, owner)` → handle, `unlock(handle, owner)`, `close()`, and where the owner is not simply
 * an id handed to `lock`, `asOwner(run)`, which calls `run(owner)` as an owner of its own. Those of the scenario with
 * several keys have `lockAll(keys, owner)` → handle and `unlockAll(handle, owner)`.
 */
const contenders = {
  'bare pair': async () => (await import('./bare-pair.mjs')).create(),
  'bare pipeline': async () => (await import('./bare-pipeline.mjs')).create(),
  'bare publish': async () => (await import('./bare-publish.mjs')).create(),
  'subscribe-and-retry': async () => (await import('./subscribe-and-retry.mjs')).create(),
  redlock: async () => (await import('./redlock.mjs')).create(),
  'redlock 5ms': async () => (await import('./redlock.mjs')).create({ retryDelay: 5, retryJitter: 2 }),
  'redis-semaphore': async () => (await import('./redis-semaphore.mjs')).create(),
  reenlock: async () => (await import('./reenlock.mjs')).create(),
  'reenlock one by one': async () => (await import('./reenlock.mjs')).createOneByOne(),
};

/** The contenders, and the Express applications, that need this package's own build. */
export const ours = ['reenlock', 'reenlock one by one', 'reenlock guard'];

/** Loads and connects the contenders of these names, and nothing of the others. */
export async function openContenders(names, { port }) {
  const opened = new Map();
  for (const name of names) {
    const contender = { asOwner: asNewOwner, ...(await contenders[name]()) };
    await contender.setup({ port });
    opened.set(name, contender);
  }
  return {
    get: (name) => opened.get(name),
    close: () => Promise.all([...opened.values()].map((contender) => contender.close())),
  };
}

let lastOwner = 0;

function asNewOwner(run) {
  lastOwner += 1;
  return run(`${process.pid}-${lastOwner}`);
}
