import { serverOf } from '../contenders/index.mjs';
import { atLeast, atMost, headline } from '../lib/compare.mjs';
import { hostApart } from '../lib/hosts.mjs';
import { meterColumns } from '../lib/meter.mjs';
import { startWorker } from '../lib/workers.mjs';

export const hotKey = {
  name: 'hot-key',
  title: 'A hot key in one process',
  what:
    '300 loops of one process on one key for 5.5 s, no time held. An overtake is a grant while an earlier acquire still ' +
    'waits. The last two columns are the commands that a grant costs the server between 0.25 and 0.75 s, before the first ' +
    'poll, and in the last half second: they are equal if a key that stays hot does not become more expensive.',
  contenders: [
    'bare poller',
    'subscribe-and-retry',
    'redlock',
    'redlock 5ms',
    'redis-semaphore',
    'advisory lock',
    'reenlock',
    'reenlock on PostgreSQL',
  ],
  columns: {
    perSecond: 'grants/s',
    overtakes: 'overtakes',
    ...meterColumns('grant'),
    commandsFirst: 'commands a grant, at first',
    commandsLast: 'commands a grant, at last',
  },
  reference: { name: 'subscribe-and-retry', columns: ['perSecond'] },
  rounds: 5,
  size: { loops: 300, durationMs: 5_500 },
  quick: { rounds: 2, size: { durationMs: 3_000 } },
  async open(names, context) {
    const host = await hostApart('hot-key', names, context);
    const warmUp = { ...context.size, durationMs: 1_000 };
    for (const name of names)
      await host.warmUp(name, { ...warmUp, key: `warm-up:${name}`, isOnRedis: isOnRedis(name) });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size, isOnRedis: isOnRedis(name) }),
  goals: ({ ratio, max }) => [
    atLeast('grants/s, × subscribe-and-retry', ratio('reenlock', 'subscribe-and-retry', 'perSecond'), 2.5),
    atMost('overtakes, the most of all rounds', max('reenlock', 'overtakes'), 0),
    atMost('commands a grant, at last × at first, the most of all rounds', max('reenlock', 'growth'), 1.1),
  ],
  headlines: ({ ratio }) => [
    headline(
      'a hot key in one process, no overtaking',
      ratio('reenlock', 'subscribe-and-retry', 'perSecond'),
      '×',
      'the grants a second of subscribe-and-retry, where later callers overtake earlier ones',
    ),
  ],
};

export const hotKeyFar = {
  ...hotKey,
  name: 'hot-key-far',
  title: 'A hot key in one process, the server a millisecond away',
  what:
    'The same with 100 loops, through a process that passes bytes on a millisecond later in each direction. On loopback a ' +
    'round trip costs no more than the work at its ends; between hosts the round trips count.',
  contenders: ['subscribe-and-retry', 'reenlock'],
  rounds: 4,
  size: { loops: 100, durationMs: 5_500 },
  quick: { rounds: 1, size: { durationMs: 3_000 } },
  async open(names, context) {
    const { servers } = context;
    const link = await startWorker('far', { port: servers.ports.redis });
    const ports = { ...servers.ports, redis: await link.call('port') };
    const host = await hotKey.open(names, { ...context, servers: { ...servers, ports } });
    return { ...host, close: () => host.close().then(() => link.close()) };
  },
  goals: ({ ratio }) => [
    atLeast('grants/s, × subscribe-and-retry', ratio('reenlock', 'subscribe-and-retry', 'perSecond'), 1.5),
  ],
  headlines: ({ ratio }) => [
    headline(
      'the same, the server a millisecond away',
      ratio('reenlock', 'subscribe-and-retry', 'perSecond'),
      '×',
      'the same',
    ),
  ],
};

function isOnRedis(name) {
  return serverOf(name) === 'redis';
}
