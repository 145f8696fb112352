import { atMost } from '../lib/compare.mjs';
import { startRedis } from '../lib/redis-server.mjs';
import { startWorker } from '../lib/workers.mjs';

const numberOf = (name) => Number(name.split(' ')[0].replaceAll(',', ''));

/** Its rows are sizes, each with a server and a process of its own: this package alone, beside itself. */
export const keys = {
  name: 'keys',
  title: 'The cost of a lock, by how many keys were used before',
  what:
    'Acquire and release of keys that were used before, chosen at random among so many whose records the server still ' +
    'keeps. Flat is a ratio of 1.',
  isCurve: true,
  contenders: ['1,000 keys', '10,000 keys', '100,000 keys', '1,000,000 keys'],
  quickContenders: ['1,000 keys', '10,000 keys', '100,000 keys'],
  columns: { oneUs: 'one at a time, p50 µs', wideUs: 'µs each, 64 at once' },
  reference: { name: '1,000 keys', column: 'wideUs' },
  rounds: 10,
  size: { count: 5_000, width: 64 },
  quickRounds: 3,
  quickSize: { count: 1_000 },

  async open(names, { size }) {
    const hosts = new Map();
    for (const name of names) {
      const redis = await startRedis();
      const worker = await startWorker('curve', { port: redis.port });
      await worker.call('use', { keys: numberOf(name) });
      await worker.call('cycles', { keys: numberOf(name), ...size });
      hosts.set(name, { redis, worker });
    }
    const close = async () => {
      for (const { redis, worker } of hosts.values()) {
        await worker.close();
        await redis.stop();
      }
    };
    return { hosts, close };
  },
  measure: ({ hosts }, name, { size }) => hosts.get(name).worker.call('cycles', { keys: numberOf(name), ...size }),
  targets: ({ names, ratio }) => [
    atMost(`µs each, ${names.at(-1)}, × 1,000 keys`, ratio(names.at(-1), '1,000 keys', 'wideUs'), 1.25),
  ],
};

export const waiters = {
  name: 'waiters',
  title: 'The cost of a turn, by how many wait',
  what:
    'So many owners of one process on one key, each of which queues again after its turn; no time held. Flat is a ratio ' +
    'of 1.',
  isCurve: true,
  contenders: ['2 waiters', '10 waiters', '100 waiters', '1,000 waiters', '10,000 waiters'],
  columns: { turnUs: 'µs a turn' },
  reference: { name: '2 waiters', column: 'turnUs' },
  rounds: 5,
  size: { turns: 5_000 },
  quickRounds: 3,
  quickSize: { turns: 1_000 },

  open: (names, context) => openWorkers(names, context, 'turns', 'waiters'),
  measure: ({ workers }, name, { key, size }) =>
    workers.get(name).call('turns', { key, waiters: numberOf(name), ...size }),
  targets: ({ names, ratio }) => [
    atMost(`µs a turn, ${names.at(-1)}, × 2 waiters`, ratio(names.at(-1), '2 waiters', 'turnUs'), 1.25),
  ],
};

export const readers = {
  name: 'readers',
  title: 'The cost of a hold to read, by how many others read',
  what: 'Acquire and release to read, one at a time, while so many other scopes of the process hold the key to read.',
  isCurve: true,
  contenders: ['1 reader', '10 readers', '100 readers', '1,000 readers'],
  columns: { oneUs: 'p50 µs' },
  reference: { name: '1 reader', column: 'oneUs' },
  rounds: 10,
  size: { count: 500 },
  quickRounds: 3,
  quickSize: { count: 100 },

  open: (names, context) => openWorkers(names, context, 'reads', 'readers'),
  measure: ({ workers }, name, { key, size }) =>
    workers.get(name).call('reads', { key, readers: numberOf(name), ...size }),
  targets: ({ ratio }) => [atMost('p50, 100 readers, × 1 reader', ratio('100 readers', '1 reader', 'oneUs'), 1.5)],
};

/** A process for each row, warm. */
async function openWorkers(names, { redis, size }, what, count) {
  const workers = new Map();
  for (const name of names) {
    const worker = await startWorker('curve', { port: redis.port });
    await worker.call(what, { key: `warm-up:${name}`, [count]: numberOf(name), ...size });
    workers.set(name, worker);
  }
  return { workers, close: () => Promise.all([...workers.values()].map((worker) => worker.close())) };
}
