import { atMost } from '../lib/compare.mjs';
import { hostTogether } from '../lib/hosts.mjs';
import { meterColumns } from '../lib/meter.mjs';

export const run = scenario({
  name: 'run',
  title: '`lock.run` on Redis',
  place: 'reenlock',
  durationMs: 250,
  columns: meterColumns('cycle'),
});

export const runInMemory = scenario({
  name: 'run-memory',
  title: '`lock.run` in memory',
  place: 'reenlock in memory',
  durationMs: 400,
  columns: { clientUs: 'client CPU µs a cycle' },
});

function scenario({ name, title, place, durationMs, columns }) {
  const withRun = `${place}, run`;
  return {
    name,
    title,
    what: 'One free key, one cycle after the other: `acquire` and `release`, compared with `lock.run` of a function that does nothing.',
    contenders: [place, withRun],
    columns: { perSecond: 'cycles/s', ...columns },
    reference: { name: place, columns: ['perSecond', 'clientUs'] },
    rounds: 24,
    size: { durationMs },
    quick: { rounds: 4 },
    async open(names, context) {
      const host = await hostTogether('cycles', names, context);
      for (const each of names) await host.warmUp(each, { key: `warm-up:${each}`, durationMs: 1_000 });
      return host;
    },
    measure: (host, each, { key, size }) => host.run(each, { key, ...size }),
    goals: ({ ratio }) => [atMost('client CPU of run, × acquire and release', ratio(withRun, place, 'clientUs'), 1.1)],
  };
}
