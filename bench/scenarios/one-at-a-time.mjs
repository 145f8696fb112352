import { atMost } from '../lib/compare.mjs';
import { hostTogether } from '../lib/hosts.mjs';

export const oneAtATime = {
  name: 'one-at-a-time',
  title: 'One at a time',
  what:
    'Acquire and release one free key, one cycle after the other; all contenders in one process. Quiet rounds: the tenth ' +
    'percentile of the rounds, where the system had no core to wake.',
  contenders: ['bare pair', 'subscribe-and-retry', 'redlock', 'redis-semaphore', 'reenlock'],
  columns: { p50Us: 'p50 µs' },
  quietColumns: { p50Us: 'p50 µs, quiet rounds' },
  reference: { name: 'bare pair', column: 'p50Us' },
  rounds: 120,
  size: { cycles: 200 },
  quickRounds: 30,
  async open(names, context) {
    const host = await hostTogether('one-at-a-time', names, context);
    for (const name of names) await host.run(name, { key: `warm-up:${name}`, cycles: 3_000 });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size }),
  targets: ({ ratio, quiet }) => [
    atMost('p50, × bare pair', ratio('reenlock', 'bare pair', 'p50Us'), 1.15),
    atMost('p50, × bare pair, quiet rounds', quiet('reenlock', 'p50Us') / quiet('bare pair', 'p50Us'), 1.15),
  ],
};
