import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { LockStoreError } from 'reenlock';
import { QuorumStore } from 'reenlock/redis';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import { watchLeaks } from '../helpers/leaks.ts';
import { type RedisNode, RedisNodes } from '../helpers/redis-nodes.ts';
import { describeContract } from './contract.ts';

watchLeaks();

/** The suite's short leases may be over before a busy machine has asked three servers: no time passes for this clock. */
const patient: Clock = {
  ...systemClock,
  now: (
    (now) => () =>
      now
  )(systemClock.now()),
};

describe('on three servers', () => {
  const redis = new RedisNodes();
  let nodes: RedisNode[] = [];
  let store: QuorumStore;
  beforeAll(async () => {
    await redis.start(3);
    nodes = redis.connect();
    await Promise.all(nodes.map(({ client }) => client.ping()));
  });
  afterAll(() => redis.stop());

  const flush = () => Promise.all(nodes.map(({ client }) => client.flushall()));
  const clients = () => nodes.map(({ client }) => client);

  describeContract('QuorumStore', {
    async create() {
      await flush();
      // The suite compares ends of leases: none may be told before each node has answered, however busy the machine is.
      store = new QuorumStore({ stores: nodes, nodeTimeoutMs: 20_000 }, patient);
      return store;
    },
    elapse: async (ms) => {
      await Promise.all(clients().map((client) => elapse(client, ms)));
    },
    lacksQueue: true,
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
          return store;
        },
      },
    ],
    faults: [
      {
        name: 'nobody listens on any port',
        outcome: 'unknown',
        async create() {
          const down = [1, 2, 3].map((port) => redis.node(port, { maxRetriesPerRequest: 0 }));
          return {
            store: new QuorumStore({ stores: down }),
            close: async () => {
              for (const { client } of down) client.disconnect();
            },
          };
        },
      },
      {
        name: 'no node allows the calls',
        outcome: 'not-applied',
        async create() {
          for (const client of clients())
            await client.call('ACL', 'SETUSER', 'weak', 'on', 'nopass', '~*', '+ping', '+info', '+hello');
          const weak = redis.connect({ username: 'weak', password: 'any' });
          const stores = weak.map((node) => refusing(node));
          return {
            store: new QuorumStore({ stores, nodeTimeoutMs: 20_000 }),
            close: async () => {
              for (const { client } of weak) client.disconnect();
            },
          };
        },
      },
    ],
  });
});

/** The node's own additional calls would be refused by ioredis's error, not by the store's. */
function refusing(node: RedisNode): RedisNode {
  const asStoreError = (error: unknown): never => {
    if (error instanceof LockStoreError) throw error;
    throw new LockStoreError('The lock store answered NOPERM', { cause: error, outcome: 'not-applied' });
  };
  const { renew, forceRelease } = node;
  node.renew = (...args) => renew.apply(node, args).catch(asStoreError);
  node.forceRelease = (...args) => forceRelease.apply(node, args).catch(asStoreError);
  return node;
}

/** Waits until the server's clock has gone on by more than `ms`. */
async function elapse(client: Redis, ms: number): Promise<void> {
  const untilMs = (await timeMs(client)) + ms + 1;
  for (let nowMs = 0; nowMs < untilMs; nowMs = await timeMs(client)) await sleep(Math.min(ms, untilMs - nowMs));
}

async function timeMs(client: Redis): Promise<number> {
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}
