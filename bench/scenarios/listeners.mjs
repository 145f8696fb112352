import { atMost } from '../lib/compare.mjs';
import { hostApart } from '../lib/hosts.mjs';

const none = 'reenlock in memory';
const removed = 'reenlock in memory, listeners removed';

export const listeners = {
  name: 'listeners',
  title: 'Events, metrics and traces',
  what:
    'Acquire and release one free key in memory, one cycle after the other: without a listener, after listeners of all events ' +
    'were added and removed again, with listeners of all events, with a subscriber of the tracing channel, with ' +
    '`reenlock/prometheus`, and with `reenlock/otel` on a provider that drops its spans. The first row does nothing but ask ' +
    'whether anybody listens, as often as a cycle does.',
  contenders: [
    'the checks alone',
    none,
    removed,
    'reenlock in memory, all listeners',
    'reenlock in memory, channel',
    'reenlock in memory, prometheus',
    'reenlock in memory, otel',
  ],
  columns: { clientUs: 'client CPU µs a cycle', perSecond: 'cycles/s' },
  reference: { name: none, columns: ['clientUs'] },
  rounds: 14,
  size: { durationMs: 500 },
  quick: { rounds: 2, size: { durationMs: 200 } },
  async open(names, context) {
    const host = await hostApart('cycles', names, context);
    for (const name of names) await host.warmUp(name, { key: `warm-up:${name}`, durationMs: 1_000 });
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size }),
  goals: ({ ratio, spread }) => [
    atMost('client CPU, listeners removed, × none', ratio(removed, none, 'clientUs'), 1.03),
    atMost('client CPU of the checks alone, µs a cycle', spread('the checks alone', 'clientUs'), 0.5),
  ],
};
