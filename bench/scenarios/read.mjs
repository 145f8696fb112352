import { hostApart } from '../lib/hosts.mjs';
import { meterColumns } from '../lib/meter.mjs';

export const read = {
  name: 'read',
  title: '64 readers of one key',
  what:
    '64 loops of one process at the same time, all of which acquire one key to read, and release it. The first row is that ' +
    'of `wide`: each loop locks a free key of its own. The other contenders have no readers.',
  contenders: ['reenlock', 'reenlock, to read'],
  columns: { perSecond: 'cycles/s', ...meterColumns('cycle') },
  reference: { name: 'reenlock', columns: ['perSecond', 'serverUs'] },
  rounds: 12,
  size: { loops: 64, durationMs: 500 },
  quick: { rounds: 4 },
  async open(names, context) {
    const host = await hostApart('wide', names, context);
    const warmUp = { ...context.size, durationMs: 1_000 };
    for (const name of names) await host.warmUp(name, { ...warmUp, key: `warm-up:${name}`, ...sharing(name) });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size, ...sharing(name) }),
  goals: () => [],
};

function sharing(name) {
  return { isOneKey: name.startsWith('reenlock, to read') };
}
