import type { Redis } from 'ioredis';
import { QuorumStore } from 'reenlock/redis';
import { describeStoreContract } from 'reenlock/testing/contract';
import { type Clock, systemClock } from '../../../src/core/base/clock.ts';
import type { AcquireReply, AcquireTerms, HoldRequest } from '../../../src/core/model/store.ts';
import { shortMs } from '../../../src/testing/contract/harness.ts';
import { OldRedisStore, RedisNodes } from '../../support/redis/nodes.ts';
import { elapseOnRedis } from '../../support/stores/elapse.ts';

const maxTries = 20;

/** The suite's short leases may be over before a busy machine has asked three servers: no time passes for this clock. */
const begin = systemClock.now();
const patient: Clock = {
  now: () => begin,
  after: (ms, run, isAwaited) => systemClock.after(ms, run, isAwaited),
  randomId: () => systemClock.randomId(),
  jitter: () => systemClock.jitter(),
};

/** On a server a short lease may be over before the others have said with which fence: what has failed is asked again. */
class PatientStore extends QuorumStore {
  override async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    for (let tries = 1; ; tries++) {
      try {
        return await super.acquire(request, terms);
      } catch (error) {
        if (terms.leaseMs > shortMs || tries === maxTries) throw error;
      }
    }
  }
}

describe('on three servers', () => {
  const redis = new RedisNodes();
  let clients: Redis[] = [];
  let store: QuorumStore;
  beforeAll(async () => {
    await redis.start(3);
    clients = redis.connect();
    await Promise.all(clients.map((client) => client.ping()));
  });
  afterAll(() => redis.stop());

  const flush = () => Promise.all(clients.map((client) => client.flushall()));
  const nodes = (of: readonly Redis[]) => of.map((client) => new OldRedisStore({ client }));

  describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'QuorumStore', {
    async create() {
      await flush();
      // The suite compares ends of leases: none may be told before each node has answered, however busy the machine is.
      store = new PatientStore({ stores: nodes(clients), nodeTimeoutMs: 20_000 }, patient);
      return store;
    },
    elapse: async (ms) => {
      await Promise.all(clients.map((client) => elapseOnRedis(ms, () => client.time())));
    },
    lacks: ['queue', 'handOff', 'reachability', 'modes', 'permits', 'list', 'edges', 'transfer', 'nesting'],
    losses: [
      {
        name: 'FLUSHALL on every node',
        async happen() {
          await flush();
          return store;
        },
      },
      {
        name: 'a restart of every node',
        async happen() {
          await Promise.all(redis.servers.map((server) => server.restart()));
          await Promise.all(clients.map((client) => client.ping()));
          return store;
        },
      },
    ],
    faults: [
      {
        name: 'nobody listens on any port',
        outcome: 'unknown',
        async create() {
          const down = [1, 2, 3].map((port) => redis.client(port, { maxRetriesPerRequest: 0 }));
          return {
            store: new QuorumStore({ stores: nodes(down) }),
            close: async () => {
              for (const client of down) client.disconnect();
            },
          };
        },
      },
      {
        name: 'no node allows the calls',
        outcome: 'not-applied',
        async create() {
          for (const client of clients)
            await client.call('ACL', 'SETUSER', 'weak', 'on', 'nopass', '~*', '+ping', '+info', '+hello');
          const weak = redis.connect({ username: 'weak', password: 'any' });
          // Only of what is sent once they are connected the stores can tell that it was sent once.
          await Promise.all(weak.map((client) => client.ping()));
          return {
            store: new QuorumStore({ stores: nodes(weak), nodeTimeoutMs: 20_000 }),
            close: async () => {
              for (const client of weak) client.disconnect();
            },
          };
        },
      },
    ],
  });
});
