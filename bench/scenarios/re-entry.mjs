import { atLeast, atMost, headline } from '../lib/compare.mjs';
import { hostApart } from '../lib/hosts.mjs';

export const reEntry = {
  name: 're-entry',
  title: 'Re-entry',
  what:
    'Acquire and release, nested in a hold of the same owner on the same key, again and again. Commands are those that ' +
    'the server ran meanwhile, including those inside scripts. The other contenders are not reentrant.',
  contenders: ['subscribe-and-retry', 'reenlock', 'reenlock, listeners on'],
  columns: {
    perSecond: 're-entries/s',
    clientUs: 'client CPU µs a re-entry',
    commands: 'Redis commands',
    commandsEach: 'commands each',
  },
  reference: { name: 'subscribe-and-retry', columns: ['perSecond'] },
  rounds: 12,
  size: { durationMs: 500 },
  quick: { rounds: 4 },
  async open(names, context) {
    const host = await hostApart('re-entry', names, context);
    for (const name of names) await host.warmUp(name, { key: `warm-up:${name}`, durationMs: 1_000 });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size }),
  goals: ({ spread, max }) => [
    atMost('Redis commands, the most of all rounds', max('reenlock', 'commands'), 0),
    atLeast('re-entries/s', spread('reenlock', 'perSecond'), 1_200_000),
  ],
  headlines: ({ spread }) => [headline('re-entry', spread('reenlock', 'perSecond'), 'a second', 'no Redis command')],
};
