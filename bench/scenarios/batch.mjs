import { atMost, headline } from '../lib/compare.mjs';
import { hostTogether } from '../lib/hosts.mjs';
import { meterColumns } from '../lib/meter.mjs';

const most = 100;

export const batch = {
  name: 'batch',
  title: 'Several keys',
  what:
    'Acquire and release 1, 10 and 100 free keys: in one call, one by one, and as one pipeline each of bare pairs. All ' +
    'contenders share one process. The processor time is that of 100 keys.',
  contenders: ['bare pipeline', 'reenlock one by one', 'reenlock'],
  columns: {
    of1Us: '1 key, p50 µs',
    of10Us: '10 keys, p50 µs',
    of100Us: '100 keys, p50 µs',
    ...meterColumns('batch'),
  },
  reference: { name: 'bare pipeline', columns: ['of100Us'] },
  rounds: 48,
  size: { durationMs: 110 },
  quick: { rounds: 12 },
  async open(names, context) {
    const host = await hostTogether('batch', names, context);
    for (const name of names) await host.warmUp(name, { key: `warm-up:${name}`, size: most, durationMs: 1_000 });
    return host;
  },
  async measure(host, name, { key, size: { durationMs } }) {
    const of = (size) => host.run(name, { key, size, durationMs });
    const { p50Us: of1Us } = await of(1);
    const { p50Us: of10Us } = await of(10);
    const { p50Us: of100Us, ...used } = await of(most);
    return { of1Us, of10Us, of100Us, ...used };
  },
  goals: ({ ratio }) => [atMost('100 keys, × one by one', ratio('reenlock', 'reenlock one by one', 'of100Us'), 0.5)],
  headlines: ({ ratio }) => [
    headline(
      '100 free keys in one call',
      ratio('reenlock', 'reenlock one by one', 'of100Us'),
      '×',
      'the time to acquire them one by one',
    ),
  ],
};
