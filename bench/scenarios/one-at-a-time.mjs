import { atMost, headline } from '../lib/compare.mjs';
import { hostTogether } from '../lib/hosts.mjs';
import { meterColumns } from '../lib/meter.mjs';

export const oneAtATime = {
  name: 'one-at-a-time',
  title: 'One at a time',
  what:
    'Acquire and release one free key, one cycle after the other. All contenders share one process. A quiet round is the ' +
    'tenth percentile of the rounds: one in which the system had no core to wake.',
  contenders: [
    'bare pair',
    'bare pair on node-redis',
    'subscribe-and-retry',
    'redlock',
    'redis-semaphore',
    'advisory lock',
    'reenlock',
    'reenlock, listeners on',
    'reenlock on node-redis',
    'reenlock on PostgreSQL',
  ],
  columns: { p50Us: 'p50 µs', ...meterColumns('cycle') },
  quietColumns: { p50Us: 'p50 µs, quiet rounds' },
  reference: { name: 'bare pair', columns: ['p50Us', 'serverUs'] },
  rounds: 64,
  size: { durationMs: 100 },
  quick: { rounds: 16 },
  async open(names, context) {
    const host = await hostTogether('one-at-a-time', names, context);
    for (const name of names) await host.warmUp(name, { key: `warm-up:${name}`, durationMs: 1_000 });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size }),
  goals: ({ ratio, quiet }) => [
    atMost('p50, × bare pair', ratio('reenlock', 'bare pair', 'p50Us'), 1.05),
    atMost('p50, × bare pair, quiet rounds', quiet('reenlock', 'p50Us') / quiet('bare pair', 'p50Us'), 1.05),
    atMost('server CPU, × bare pair', ratio('reenlock', 'bare pair', 'serverUs'), 1.15),
  ],
  headlines: ({ ratio }) => [
    headline(
      'acquire and release a free key, one at a time',
      ratio('reenlock', 'bare pair', 'p50Us'),
      '×',
      'the time of a bare `SET NX` and compare-and-delete',
    ),
  ],
};
