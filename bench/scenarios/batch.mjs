import { atMost } from '../lib/compare.mjs';
import { hostTogether } from '../lib/hosts.mjs';

export const batch = {
  name: 'batch',
  title: 'Several keys',
  what:
    'Acquire and release 1, 10 and 100 free keys: in one call, one by one, and as one pipeline each of bare pairs; all ' +
    'contenders in one process.',
  contenders: ['bare pipeline', 'reenlock one by one', 'reenlock'],
  columns: { of1Us: '1 key, p50 µs', of10Us: '10 keys, p50 µs', of100Us: '100 keys, p50 µs' },
  reference: { name: 'bare pipeline', column: 'of100Us' },
  rounds: 60,
  size: { sizes: [1, 10, 100], times: 500 },
  quickRounds: 10,
  async open(names, context) {
    const host = await hostTogether('batch', names, context);
    const { sizes } = context.size;
    for (const name of names) await host.run(name, { key: `warm-up:${name}`, sizes, times: 3_000 });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size }),
  targets: ({ ratio }) => [atMost('100 keys, × one by one', ratio('reenlock', 'reenlock one by one', 'of100Us'), 0.5)],
};
