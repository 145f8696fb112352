import { hostApart } from '../lib/hosts.mjs';

export const contendedBatch = {
  name: 'contended-batch',
  title: 'Several keys in demand',
  what:
    'How long 25 clients of one process wait for 2 of 6 keys, at random, which they then hold for 5 ms. A single key is first ' +
    'in, first out; several keys are taken one after the other, and a later caller may be faster. The queue that it is compared ' +
    'with is in memory, knows the keys of all callers, and grants all keys of a caller at once.',
  contenders: ['all-or-nothing queue', 'reenlock in memory', 'reenlock'],
  columns: { p50Ms: 'wait, p50 ms', p99Ms: 'wait, p99 ms', maxMs: 'wait, most ms' },
  reference: { name: 'all-or-nothing queue', columns: ['p99Ms'] },
  rounds: 8,
  size: { clients: 25, size: 2, of: 6, heldMs: 5, durationMs: 3_000 },
  quick: { rounds: 2, size: { durationMs: 1_000 } },
  async open(names, context) {
    const host = await hostApart('contended-batch', names, context);
    for (const name of names) {
      await host.warmUp(name, { ...context.size, key: `warm-up:${name}`, durationMs: 500 });
    }
    return host;
  },
  measure: (host, name, { key, size }) => host.run(name, { key, ...size }),
  goals: () => [],
  headlines: () => [],
};
