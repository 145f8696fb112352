import { atLeast, headline } from '../lib/compare.mjs';
import { hostTogether } from '../lib/hosts.mjs';
import { meterColumns } from '../lib/meter.mjs';

export const wide = {
  name: 'wide',
  title: '64 at once',
  what: '64 loops of one process at the same time, each acquiring and releasing a free key of its own.',
  contenders: [
    'bare pair',
    'bare pair on a cluster',
    'bare pair on node-redis',
    'subscribe-and-retry',
    'redlock',
    'redis-semaphore',
    'advisory lock',
    'reenlock',
    'reenlock, listeners on',
    'reenlock on a cluster',
    'reenlock on node-redis',
    'reenlock on PostgreSQL',
  ],
  columns: { perSecond: 'cycles/s', ...meterColumns('cycle') },
  reference: { name: 'bare pair', columns: ['perSecond', 'serverUs'] },
  rounds: 64,
  size: { loops: 64, durationMs: 100 },
  quick: { rounds: 16 },
  async open(names, context) {
    const host = await hostTogether('wide', names, context);
    for (const name of names) await host.warmUp(name, { ...context.size, key: `warm-up:${name}`, durationMs: 1_000 });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size }),
  goals: ({ ratio }) => [atLeast('cycles/s, × bare pair', ratio('reenlock', 'bare pair', 'perSecond'), 1.05)],
  headlines: ({ ratio }) => [
    headline(
      '64 free keys at the same time',
      ratio('reenlock', 'bare pair', 'perSecond'),
      '×',
      'the cycles a second of that bare pair',
    ),
  ],
};
