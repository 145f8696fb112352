import { Redis as Redis6 } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { CasStore, RedisCas } from 'reenlock/redis';
import { describeStoreContract, type StoreFault } from 'reenlock/testing/contract';
import { matrix } from '../../support/matrix.ts';
import { disconnectTimeout } from '../../support/redis/client.ts';
import type { RedisOptions } from '../../support/redis/redis-stage.ts';
import { type RedisServer, startRedis } from '../../support/redis/server.ts';
import { elapseOnRedis } from '../../support/stores/elapse.ts';

type Connect = (port: number, options: RedisOptions) => Redis6;

const clients = matrix<readonly [version: string, connect: Connect]>(
  [['ioredis 6', (port, options) => new Redis6(port, options)]],
  () => [['ioredis 5', (port, options) => new Redis5(port, options as object) as unknown as Redis6]],
);

/** A user that may run no script at all. */
const plain = ['--user', 'plain', 'on', 'nopass', '~*', '&*', '+@all', '-@scripting'];

describe('on a server without scripts', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ args: plain });
  });
  afterAll(() => server.stop());

  for (const [version, connect] of clients) {
    describe(`${version}, as a user who may run none`, () => {
      let client: Redis6;
      let adapter: RedisCas;
      let store: CasStore;
      beforeAll(() => {
        client = connect(server.port, {
          username: 'plain',
          password: 'any',
          keyPrefix: 'shop:',
          retryStrategy: () => 10,
        });
        adapter = new RedisCas({ client });
      });
      afterEach(() => adapter.close());
      afterAll(() => client.disconnect());

      it('A script is refused', async () => {
        await expect(client.eval('return 1', 0)).rejects.toThrow(/NOPERM/);
      });

      describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'CasStore', {
        async create() {
          await client.flushall();
          // A machine that has too much to do may keep a server for seconds.
          store = new CasStore({ adapter, deadlineMs: 10_000 });
          return store;
        },
        elapse: (ms) => elapseOnRedis(ms, () => client.time()),
        lacks: ['reachability', 'list', 'edges'],
        losses: [
          {
            name: 'FLUSHALL',
            async happen() {
              await client.flushall();
              return store;
            },
          },
          {
            name: 'a restart without persistence',
            async happen() {
              await server.restart();
              return store;
            },
          },
        ],
        faults: faults(connect, () => server.port),
      });
    });
  }
});

function faults(connect: Connect, port: () => number): StoreFault[] {
  const broken = async (at: number, options: RedisOptions) => {
    const client = connect(at, { maxRetriesPerRequest: 0, retryStrategy: () => 10, disconnectTimeout, ...options });
    // What ioredis says by event it also says to each call.
    client.on('error', () => {});
    const adapter = new RedisCas({ client });
    const close = async () => {
      adapter.close();
      client.disconnect();
    };
    return { store: new CasStore({ adapter }), close };
  };
  const user = async (...rights: string[]) => {
    const admin = connect(port(), {});
    await admin.call('ACL', 'SETUSER', 'weak', 'reset', 'on', 'nopass', '~*', '+ping', '+info', '+hello', ...rights);
    admin.disconnect();
    return broken(port(), { username: 'weak', password: 'any' });
  };
  // What fails at the read has written nothing.
  return [
    { name: 'nobody listens at the port', outcome: 'not-applied', create: () => broken(1, {}) },
    { name: 'the user has no permission', outcome: 'not-applied', create: () => user() },
  ];
}
