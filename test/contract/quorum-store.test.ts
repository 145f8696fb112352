import { QuorumStore } from 'reenlock/redis';
import { FakeStore } from '../helpers/fake-store.ts';
import { watchLeaks } from '../helpers/leaks.ts';
import { ManualClock } from '../helpers/manual-clock.ts';
import { describeContract } from './contract.ts';
import type { StoreFault } from './harness.ts';

watchLeaks();

describe.each([3, 4, 5])('on %i nodes in memory', (count) => {
  let clock = new ManualClock();
  let nodes: FakeStore[] = [];
  let store: QuorumStore;

  function create(): QuorumStore {
    clock = new ManualClock();
    nodes = Array.from({ length: count }, () => new FakeStore(clock));
    store = new QuorumStore({ stores: nodes }, clock);
    return store;
  }

  const fault = (name: string, outcome: StoreFault['outcome'], error: () => Error): StoreFault => ({
    name,
    outcome,
    async create() {
      create();
      for (const node of nodes) {
        for (const operation of ['acquire', 'renew', 'release', 'inspect', 'forceRelease'] as const)
          node.always(operation, { kind: 'rejected', error: error() });
      }
      return { store, close: async () => {} };
    },
  });

  describeContract('QuorumStore', {
    create: async () => create(),
    elapse: (ms) => clock.advance(ms),
    lacks: ['queue', 'handOff', 'reachability', 'modes', 'list', 'edges'],
    losses: [
      {
        name: 'all nodes lost everything',
        async happen() {
          await clock.advance(1);
          for (const node of nodes) await node.forget();
          return store;
        },
      },
    ],
    faults: [fault('no node can be reached', 'unknown', () => new Error('ECONNREFUSED 127.0.0.1:6379'))],
  });
});
