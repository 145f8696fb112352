import { atMost } from '../lib/compare.mjs';
import { startWorker } from '../lib/workers.mjs';

const onRedis = 'free key in Redis';

export const guardPath = {
  name: 'guard-path',
  title: 'Source files and functions that a guarded request enters',
  what:
    'One request to a route behind `traceContext` and `lockOn`, from its begin to the release, counted with the coverage ' +
    'of V8: the files of this package of which a function is called, and those functions. A timer that happens to fire ' +
    'meanwhile adds some; the median leaves it out.',
  isCount: true,
  contenders: [onRedis, 'free key in memory'],
  columns: { files: 'files', functions: 'functions' },
  rounds: 5,
  size: {},
  quick: { rounds: 1 },

  async open(names, { servers }) {
    const workers = new Map();
    for (const name of names) {
      workers.set(name, await startWorker('guard-path', { ports: name === onRedis ? servers.ports : {} }));
    }
    return { workers, close: () => Promise.all([...workers.values()].map((worker) => worker.close())) };
  },

  async measure({ workers }, name) {
    const called = await workers.get(name).call('count');
    return {
      files: called.length,
      functions: called.reduce((total, { functions }) => total + functions.length, 0),
      notes: called.map(({ file, functions }) => `${file}: ${functions.length}: ${functions.join(', ')}`),
    };
  },

  goals: ({ median }) => [
    atMost('files, free key in Redis', median(onRedis, 'files'), 32),
    atMost('functions, free key in Redis', median(onRedis, 'functions'), 150),
  ],
};
