import { atLeast, atMost } from '../lib/compare.mjs';
import { hostApart } from '../lib/hosts.mjs';
import { startWorker } from '../lib/workers.mjs';

export const hotKey = {
  name: 'hot-key',
  title: 'A hot key in one process',
  what:
    '300 loops of one process on one key, 15 turns each, no time held; no turn begins after 5 s. An overtake is a grant ' +
    'while an earlier ask still waits.',
  contenders: ['subscribe-and-retry', 'redlock', 'redlock 5ms', 'redis-semaphore', 'reenlock'],
  columns: { handOffsPerSecond: 'grants/s', grants: 'grants', overtakes: 'overtakes' },
  reference: { name: 'subscribe-and-retry', column: 'handOffsPerSecond' },
  rounds: 5,
  size: { loops: 300, turns: 15, limitMs: 5_000 },
  quickRounds: 3,
  quickSize: { limitMs: 1_500 },
  async open(names, context) {
    const host = await hostApart('hot-key', names, context);
    for (const name of names) await host.run(name, { ...context.size, key: `warm-up:${name}`, limitMs: 1_000 });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size }),
  targets: ({ ratio, max }) => [
    atLeast('grants/s, × subscribe-and-retry', ratio('reenlock', 'subscribe-and-retry', 'handOffsPerSecond'), 1.5),
    atMost('overtakes, the most of all rounds', max('reenlock', 'overtakes'), 0),
  ],
};

export const hotKeyFar = {
  ...hotKey,
  name: 'hot-key-far',
  title: 'A hot key in one process, the server a millisecond away',
  what:
    'The same with 100 loops of 10 turns, through a process that passes bytes on a millisecond later in each direction: on ' +
    'loopback a round trip costs no more than the work at its ends, between hosts it is what counts.',
  contenders: ['subscribe-and-retry', 'reenlock'],
  rounds: 3,
  size: { loops: 100, turns: 10, limitMs: 10_000 },
  quickRounds: 1,
  quickSize: {},
  async open(names, context) {
    const link = await startWorker('far', { port: context.redis.port });
    const host = await hotKey.open(names, { ...context, redis: { ...context.redis, port: await link.call('port') } });
    return { run: host.run, close: () => host.close().then(() => link.close()) };
  },
  targets: ({ ratio }) => [
    atLeast('grants/s, × subscribe-and-retry', ratio('reenlock', 'subscribe-and-retry', 'handOffsPerSecond'), 1.5),
  ],
};
