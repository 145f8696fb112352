import { atLeast } from '../lib/compare.mjs';
import { hostTogether } from '../lib/hosts.mjs';

export const wide = {
  name: 'wide',
  title: '64 wide',
  what: '64 loops of one process at a time, each acquiring and releasing a free key of its own.',
  contenders: ['bare pair', 'subscribe-and-retry', 'redlock', 'redis-semaphore', 'reenlock'],
  columns: { cyclesPerSecond: 'cycles/s' },
  reference: { name: 'bare pair', column: 'cyclesPerSecond' },
  rounds: 100,
  size: { loops: 64, cycles: 20 },
  quickRounds: 30,
  async open(names, context) {
    const host = await hostTogether('wide', names, context);
    for (const name of names) await host.run(name, { key: `warm-up:${name}`, loops: 64, cycles: 200 });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size }),
  targets: ({ ratio }) => [atLeast('cycles/s, × bare pair', ratio('reenlock', 'bare pair', 'cyclesPerSecond'), 0.9)],
};
