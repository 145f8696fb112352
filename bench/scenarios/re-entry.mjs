import { atLeast, atMost } from '../lib/compare.mjs';
import { hostApart } from '../lib/hosts.mjs';

export const reEntry = {
  name: 're-entry',
  title: 'Re-entry',
  what:
    'Acquire and release, nested in a hold of the same owner on the same key, again and again. Commands are those that ' +
    'the server ran meanwhile, inside scripts too. The other peers are not reentrant.',
  contenders: ['subscribe-and-retry', 'reenlock'],
  columns: { perSecond: 're-entries/s', commands: 'Redis commands', commandsEach: 'commands each' },
  reference: { name: 'subscribe-and-retry', column: 'perSecond' },
  rounds: 9,
  size: { durationMs: 500 },
  quickRounds: 3,
  quickSize: { durationMs: 200 },
  async open(names, context) {
    const host = await hostApart('re-entry', names, context);
    for (const name of names) await host.run(name, { key: `warm-up:${name}`, ...context.size });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size }),
  targets: ({ median, max }) => [
    atMost('Redis commands, the most of all rounds', max('reenlock', 'commands'), 0),
    atLeast('re-entries/s', median('reenlock', 'perSecond'), 500_000),
  ],
};
