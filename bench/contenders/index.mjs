/**
 * The locks that are compared. To add one, write a file that exports `create(options)`, add a line here, and add its name
 * to the scenarios that it takes part in. `create` returns:
 *
 *   setup({ redis, cluster, postgres, mariadb })   connects; the values are the ports of the servers
 *   lock(key, owner) → handle    waits until the lock is granted
 *   unlock(handle, owner)
 *   close()
 *   asOwner(run)                 optional: calls `run(owner)` as an owner of its own; the default makes up a name
 *   lockAll, unlockAll           optional: the same for several keys; for `batch` and `contended-batch`
 *   cycle(key)                   optional: acquires and releases; for the scenarios `listeners` and `run`
 *   isDeadlock(error)            optional: for the scenario `deadlock`
 *
 * `server` is the server whose processor time counts. `needs` are modules that may be missing: a contender is left out if
 * one of them cannot be found.
 */
const contenders = {
  'bare pair': { file: 'bare-pair', server: 'redis' },
  'bare pair on a cluster': { file: 'bare-pair', server: 'cluster', options: { library: 'cluster' } },
  'bare pair on node-redis': {
    file: 'bare-pair',
    server: 'redis',
    needs: ['redis'],
    options: { library: 'node-redis' },
  },
  'all-or-nothing queue': { file: 'all-or-nothing', server: 'redis' },
  'bare poller': { file: 'bare-poller', server: 'redis' },
  'bare pipeline': { file: 'bare-pipeline', server: 'redis' },
  'bare publish': { file: 'bare-publish', server: 'redis' },
  'subscribe-and-retry': { file: 'subscribe-and-retry', server: 'redis' },
  redlock: { file: 'redlock', server: 'redis' },
  'redlock 5ms': { file: 'redlock', server: 'redis', options: { retryDelay: 5, retryJitter: 2 } },
  'redis-semaphore': { file: 'redis-semaphore', server: 'redis' },
  'advisory lock': { file: 'advisory-lock', server: 'postgres' },
  reenlock: { file: 'reenlock', server: 'redis', needs: ['reenlock'] },
  'reenlock one by one': { file: 'reenlock', server: 'redis', needs: ['reenlock'], options: { isOneByOne: true } },
  'reenlock, listeners on': {
    file: 'reenlock',
    server: 'redis',
    needs: ['reenlock'],
    options: { subscriber: 'listeners' },
  },
  'reenlock, to read': { file: 'reenlock', server: 'redis', needs: ['reenlock'], options: { mode: 'read' } },
  'reenlock, run': { file: 'reenlock', server: 'redis', needs: ['reenlock'], options: { hasRun: true } },
  'the checks alone': { file: 'the-checks-alone', server: 'redis' },
  'reenlock in memory': inMemory(),
  'reenlock in memory, run': inMemory({ hasRun: true }),
  'reenlock in memory, listeners removed': inMemory({ subscriber: 'removed' }),
  'reenlock in memory, all listeners': inMemory({ subscriber: 'listeners' }),
  'reenlock in memory, channel': inMemory({ subscriber: 'channel' }),
  'reenlock in memory, prometheus': inMemory({ subscriber: 'prometheus' }),
  'reenlock in memory, otel': inMemory({ subscriber: 'otel' }),
  'reenlock on a cluster': {
    file: 'reenlock',
    server: 'cluster',
    needs: ['reenlock'],
    options: { store: 'cluster' },
  },
  'reenlock on node-redis': {
    file: 'reenlock',
    server: 'redis',
    needs: ['reenlock', 'redis'],
    options: { store: 'node-redis' },
  },
  'reenlock on PostgreSQL': {
    file: 'reenlock',
    server: 'postgres',
    needs: ['reenlock/postgres'],
    options: { store: 'postgres' },
  },
  'reenlock on Redis, CAS': onRecords('redis', 'redis-cas', 'reenlock/redis'),
  'reenlock on PostgreSQL, CAS': onRecords('postgres', 'postgres-cas', 'reenlock/redis'),
  'reenlock on MariaDB, CAS': onRecords('mariadb', 'mysql-cas', 'reenlock/mysql'),
};

/** With `CasStore`, as its page advises: there are no messages between processes. */
function onRecords(server, store, subpath) {
  return { file: 'reenlock', server, needs: [subpath], options: { store, settings: { pollMs: 100 } } };
}

/** Nothing of it runs on a server. */
function inMemory(options) {
  return { file: 'reenlock', server: 'redis', needs: ['reenlock'], options: { store: 'memory', ...options } };
}

/** The server whose processor time a contender uses: `redis`, `cluster`, `postgres` or `mariadb`. */
export function serverOf(name) {
  return entryOf(name)?.server ?? 'redis';
}

/** The modules that a contender needs and that cannot be found here. A row that is no lock, as a size, needs nothing. */
export function missingFor(name) {
  return (entryOf(name)?.needs ?? []).filter((module) => !isInstalled(module));
}

/** Loads and connects the contenders of these names, and nothing of the others. */
export async function openContenders(names, ports) {
  const opened = new Map();
  for (const name of names) {
    const { file, options = {} } = entryOf(name);
    const { create } = await import(`./${file}.mjs`);
    const contender = { asOwner: asNewOwner, ...(await create(options)) };
    await contender.setup(ports);
    opened.set(name, contender);
  }
  return {
    get: (name) => opened.get(name),
    close: () => Promise.all([...opened.values()].map((contender) => contender.close())),
  };
}

/** `reenlock before` is `reenlock` in the build of another checkout, which `--before` names. */
function entryOf(name) {
  const entry = contenders[name.replace(/ before$/, '')];
  if (entry === undefined || !name.endsWith(' before')) return entry;
  return { ...entry, needs: [], options: { ...entry.options, from: process.env.BENCH_BEFORE } };
}

function isInstalled(module) {
  try {
    import.meta.resolve(module);
    return true;
  } catch {
    return false;
  }
}

let lastOwner = 0;

function asNewOwner(run) {
  lastOwner += 1;
  return run(`${process.pid}-${lastOwner}`);
}
