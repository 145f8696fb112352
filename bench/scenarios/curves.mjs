import { atMost, headline } from '../lib/compare.mjs';
import { runHeld } from '../lib/held.mjs';
import { meterColumns, metered } from '../lib/meter.mjs';
import { startWorker } from '../lib/workers.mjs';
import { rowsOf, sizeOf } from '../report/sizes.mjs';
import { startRedis } from '../servers/redis.mjs';

/** Curves compare `reenlock` with itself: their rows are sizes, not contenders. */
const contender = 'reenlock';

export const keys = {
  name: 'keys',
  title: 'How the cost of a lock grows with the number of keys',
  what:
    'Acquire and release of keys that were used before, chosen at random among so many whose records the server still ' +
    'keeps. Each size has a server and a process of its own. Flat is a ratio of 1.',
  isCurve: true,
  contenders: rowsOf([1_000, 10_000, 100_000, 1_000_000], 'key', 'keys'),
  columns: { p50Us: 'one at a time, p50 µs', eachUs: 'µs each, 64 at once', ...meterColumns('cycle') },
  chart: { x: 'keys used before', y: 'µs a cycle', series: { p50Us: 'one at a time', eachUs: '64 at once' } },
  reference: { name: '1,000 keys', columns: ['eachUs'] },
  rounds: 10,
  size: { durationMs: 300, width: 64 },
  quick: { rounds: 3, contenders: rowsOf([1_000, 10_000, 100_000], 'key', 'keys') },

  async open(names) {
    const hosts = new Map();
    for (const name of names) {
      const server = await startRedis();
      const worker = await startWorker('curve', { ports: { redis: server.port } });
      await worker.call('useKeys', { keys: sizeOf(name) });
      await server.learn(contender, () => worker.call('oneAtATime', { keys: sizeOf(name), durationMs: 1_000 }));
      await worker.call('manyAtOnce', { keys: sizeOf(name), width: 64, durationMs: 1_000 });
      hosts.set(name, { server, worker });
    }
    const close = async () => {
      for (const { server, worker } of hosts.values()) {
        await worker.close();
        await server.stop();
      }
    };
    return { hosts, close };
  },
  async measure({ hosts }, name, { size }) {
    const { worker, server } = hosts.get(name);
    const params = { keys: sizeOf(name), ...size };
    const { p50Us, wallMs } = await metered({ workers: [] }, () => worker.call('oneAtATime', params));
    const wide = await metered({ workers: [worker], server, contender }, () => worker.call('manyAtOnce', params));
    return { ...wide, p50Us, wallMs: wallMs + wide.wallMs };
  },
  goals: (comparison) => [flat(comparison, 'eachUs')],
  headlines: ({ ratio }) => [
    headline(
      'a lock after a million keys',
      ratio('1,000,000 keys', '1,000 keys', 'eachUs'),
      '×',
      'the time after a thousand',
    ),
  ],
};

export const waiters = {
  name: 'waiters',
  title: 'How the cost of a turn grows with the number of waiters',
  what:
    'So many owners of one process on one key, each of which queues again after its turn; no time held. Flat is a ratio ' +
    'of 1.',
  isCurve: true,
  contenders: rowsOf([2, 10, 100, 1_000, 10_000], 'waiter', 'waiters'),
  columns: { eachUs: 'µs a turn', ...meterColumns('turn') },
  chart: { x: 'waiters', y: 'µs a turn', series: { eachUs: 'wall time', serverUs: 'server CPU' } },
  reference: { name: '2 waiters', columns: ['eachUs'] },
  rounds: 10,
  size: { durationMs: 600 },
  quick: { rounds: 3 },

  open: (names, { servers }) =>
    openRows(names, servers, async (worker, row) => {
      await worker.call('beginTurns', { key: row, waiters: sizeOf(row) });
      await servers.get('redis').learn(contender, () => worker.call('turns', { durationMs: 1_000 }));
    }),
  measure: ({ workers }, row, { servers, size }) => {
    const worker = workers.get(row);
    return metered({ workers: [worker], server: servers.get('redis'), contender }, () => worker.call('turns', size));
  },
  goals: (comparison) => [flat(comparison, 'eachUs')],
  headlines: ({ ratio }) => [
    headline('a turn among 10,000 waiters', ratio('10,000 waiters', '2 waiters', 'eachUs'), '×', 'the time among two'),
  ],
};

export const readers = {
  name: 'readers',
  title: 'How the cost of a hold to read grows with the number of readers',
  what: 'Acquire and release to read, one at a time, while so many other scopes of the process hold the key to read.',
  isCurve: true,
  contenders: rowsOf([1, 10, 100, 1_000, 10_000], 'reader', 'readers'),
  columns: { p50Us: 'p50 µs', ...meterColumns('cycle') },
  chart: { x: 'readers', y: 'µs a cycle', isLog: true, series: { p50Us: 'wall time', serverUs: 'server CPU' } },
  reference: { name: '1 reader', columns: ['p50Us'] },
  rounds: 10,
  size: { durationMs: 600 },
  quick: { rounds: 3, contenders: rowsOf([1, 10, 100, 1_000], 'reader', 'readers') },

  async open(names, { servers }) {
    const redis = servers.get('redis');
    const { workers, close } = await openRows(names, servers, async (worker, row) => {
      await worker.call('beginReaders', { key: row, readers: sizeOf(row) });
      await redis.learn(contender, () => worker.call('reads', { key: row, durationMs: 1_000 }));
    });
    // Without its record a hold is released quickly; to release thousands of readers one by one takes minutes.
    return { workers, close: () => redis.admin.flushall().then(close) };
  },
  measure: ({ workers }, row, { servers, size }) => {
    const worker = workers.get(row);
    const work = () => worker.call('reads', { key: row, ...size });
    return metered({ workers: [worker], server: servers.get('redis'), contender }, work);
  },
  goals: ({ ratio }) => [atMost('p50, 100 readers, × 1 reader', ratio('100 readers', '1 reader', 'p50Us'), 1.5)],
  headlines: ({ ratio }) => [
    headline('a hold to read beside 100 others', ratio('100 readers', '1 reader', 'p50Us'), '×', 'the time beside one'),
  ],
};

const loopsInAll = 64;

export const processes = {
  name: 'processes',
  title: 'How the cost of a turn grows with the number of processes',
  what:
    '64 owners on one key, spread over so many processes, each of which queues again after its turn; no time held. The ' +
    'machine has few cores for so many processes: what they cost each other is in the figures.',
  isCurve: true,
  contenders: rowsOf([1, 2, 4, 8, 16], 'process', 'processes'),
  columns: { eachUs: 'µs a turn', ...meterColumns('turn') },
  chart: { x: 'processes', y: 'µs a turn', base: 2, series: { eachUs: 'wall time', serverUs: 'server CPU' } },
  reference: { name: '1 process', columns: ['eachUs'] },
  rounds: 5,
  size: { durationMs: 1_500 },
  quick: { rounds: 2, size: { durationMs: 600 } },

  open: async () => ({ close: async () => undefined }),
  measure: (_, row, { servers, size, key }) => {
    const processes = sizeOf(row);
    const params = { contender, key, servers, server: servers.get('redis'), ...size };
    return runHeld({ ...params, processes, loops: loopsInAll / processes, heldMs: 0 }, turnFigures);
  },
  goals: () => [],
};

function turnFigures({ byLoop, endUs }, { durationMs }) {
  const holds = byLoop.flat();
  const inTime = holds.filter(({ fromUs }) => fromUs < endUs).length;
  return { count: holds.length, eachUs: (durationMs * 1000) / inTime };
}

/** A process for each row, warm. */
async function openRows(names, { ports }, prepare) {
  const workers = new Map();
  for (const row of names) {
    const worker = await startWorker('curve', { ports });
    await prepare(worker, row);
    workers.set(row, worker);
  }
  return { workers, close: () => Promise.all([...workers.values()].map((worker) => worker.close())) };
}

function flat({ names, ratio }, column) {
  const [first, last] = [names[0], names.at(-1)];
  return atMost(`µs, ${last}, × ${first}`, ratio(last, first, column), 1.25);
}
