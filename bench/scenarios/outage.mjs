import { atMost } from '../lib/compare.mjs';
import { startWorker } from '../lib/workers.mjs';

const soon = 'ioredis, which retries every 200 ms';
const clients = {
  [soon]: { library: 'ioredis', retryMs: 200 },
  'ioredis, which retries as it does by default': { library: 'ioredis' },
  'node-redis at its defaults': { library: 'node-redis' },
};

export const outage = {
  name: 'outage',
  title: 'The server is killed, and starts again',
  what:
    'A process asks for 500 locks a second. Redis is killed, and starts again 12 s later, with no data. An ioredis client has ' +
    '`maxRetriesPerRequest: null`. The queue is its own: calls that were on their way when the server was killed, which it sends again. node-redis does not show its own. The heap is ' +
    'compared after a collection, right before the outage and at its end. The last two columns begin when the server replies ' +
    'again: until the client was ready, and until an acquire that was called after the return had its grant.',
  contenders: Object.keys(clients),
  columns: {
    refused: 'refused in the outage',
    queued: 'most commands in the client’s queue',
    heapKb: 'heap, kB more',
    clientMs: 'client ready, ms',
    grantMs: 'first grant, ms',
  },
  rounds: 6,
  size: { outageMs: 12_000, perSecond: 500 },
  quick: { rounds: 1, size: { outageMs: 2_000 } },

  async open(names) {
    const workers = new Map();
    for (const name of names) workers.set(name, await startWorker('outage', clients[name]));
    return { workers, close: () => Promise.all([...workers.values()].map((worker) => worker.close())) };
  },

  measure: ({ workers }, name, { size }) => workers.get(name).call('play', size),

  goals: ({ median, max }) => [
    atMost('most commands in the client’s queue, the most of all rounds', max(soon, 'queued'), 10),
    atMost('heap, kB more', median(soon, 'heapKb'), 1_000),
    atMost('first grant after the return of the server, ms', median(soon, 'grantMs'), 500),
  ],
};
