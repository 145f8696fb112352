import { QuorumStore } from 'reenlock/redis';
import { describeStoreContract, type StoreFault } from 'reenlock/testing/contract';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { FakeStore } from '../../support/stores/fake-store.ts';

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

  describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'QuorumStore', {
    create: async () => create(),
    elapse: (ms) => clock.advance(ms),
    lacks: ['queue', 'handOff', 'reachability', 'modes', 'permits', 'list', 'edges', 'transfer'],
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
