import { Redis } from 'ioredis';
import { createLocks, getLock, type LockKey, type Locks, lock, MemoryStore, runInTrace } from '../../src/core/index.ts';
import type { LockStore } from '../../src/core/model/store.ts';
import { RedisStore } from '../../src/stores/redis/redis-store.ts';
import { gate } from '../support/gate.ts';
import { pathOf } from '../support/path-of.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { everyRow } from '../support/rows.ts';

/** Each of them is another lock. */
const keys: readonly LockKey[] = [
  ...['{}', '}x', '{x', '{', '}', '}{', '{}a', 'a{b}c', '{{b}}', '%', '%007b', '%h', '%25', '|', 'a|b', 'a%007cb'],
  ...['a', 'A', 'a ', ' a', ' ', 'a:b', 'b:c', 'c', ':', 'a:', ':a', 'a/b', '-', 'a-b', '.', '0 0', '1 2 3 -'],
  ...[
    '*',
    '?',
    'a*',
    '[a-z]',
    '[^a]',
    '\\',
    '\\*',
    'h?llo',
    'a\\b',
    "'",
    '"',
    '`',
    '$1',
    '(',
    '#',
    '--',
    'nil',
    'false',
  ],
  ...[
    '\u0000',
    'a\u0000',
    'a\u0000b',
    '\n',
    '\r\n',
    'a\r\nSET b 1\r\n',
    '*1\r\n$4\r\nPING\r\n',
    '\t',
    '\u007f',
    '\u0085',
  ],
  ...[
    '\u001b',
    '\u0001b',
    '\u001b[31mred\u001b[0m',
    '\u001b]0;title\u0007',
    '\u202e',
    '\u200b',
    '\ufeff',
    '\u2028',
    '\u00a0',
    '\u3000',
  ],
  ...['\ud800', '\udc00', '\ud801', 'a\udc00b', '\udc00\ud800', '\ufffd', '%d800', '\u{1f512}', 'ключ', 'é', 'e\u0301'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype', 'valueOf', 'length'],
  ...[0, 1, -1, 1.5, 1e21, 1e-7, 2 ** 53, 9_007_199_254_740_993n, -(2n ** 80n), '1.0', '01', '+1', '0x1', '1e3'],
  ...[
    'x'.repeat(255),
    'x'.repeat(256),
    'x'.repeat(257),
    'ä'.repeat(128),
    'ä'.repeat(129),
    '{'.repeat(51),
    '{'.repeat(52),
  ],
  ...['x'.repeat(4_095), 'x'.repeat(4_096), 'y'.repeat(4_096), 'ä'.repeat(2_048), '\u0000'.repeat(4_096)],
];

/** The same characters, cut elsewhere, and categories that would break a key. */
const cuts: readonly (readonly [category: string | undefined, key: LockKey])[] = [
  ['a', 'b:c:d'],
  ['a:b', 'c:d'],
  ['a:b:c', 'd'],
  ['a', 'b|c|d'],
  ['a|b', 'c|d'],
  ['a|', 'b'],
  ['a', '|b'],
  ['a|b|c', 'd'],
  [undefined, 'a|b|c|d'],
  [undefined, 'a:b:c:d'],
  ['{}', 'a'],
  ['}', 'a'],
  ['\u0000', 'a'],
  ['\ud800', 'a'],
  ['%', '007ca'],
  ['__proto__', 'a'],
  ['*', 'a'],
  ['C', 'a'],
  ['x'.repeat(256), 'a'],
  ['x'.repeat(255), 'xa'],
  ['x'.repeat(256), 'y'.repeat(4_096)],
];

const pairs = [...keys.map((key) => [undefined, key] as const), ...keys.map((key) => ['c', key] as const), ...cuts].map(
  ([category, key]) => ({ name: nameOf(category, key), category, key }),
);

/** What a test can be called. */
function nameOf(category: string | undefined, key: LockKey): string {
  const text = typeof key === 'string' ? JSON.stringify(key) : `${key} (${typeof key})`;
  const short = text.length > 40 ? `${text.slice(0, 20)}… of ${String(key).length}` : text;
  return category === undefined ? short : `${short} in ${JSON.stringify(category).slice(0, 20)}`;
}

interface Backend {
  readonly name: string;
  start(): Promise<() => LockStore>;
  stop(): Promise<void>;
}

function memory(): Backend {
  const store = new MemoryStore();
  return { name: 'MemoryStore', start: async () => () => store, stop: async () => {} };
}

function redis(): Backend {
  let server: RedisServer;
  let client: Redis;
  return {
    name: 'RedisStore',
    async start() {
      server = await startRedis();
      client = new Redis(server.port);
      return () => new RedisStore({ client });
    },
    async stop() {
      client.disconnect();
      await server.stop();
    },
  };
}

describe.each([memory(), redis()])('A key on $name', (backend) => {
  let one: Locks;
  let two: Locks;
  let connect: () => LockStore;
  const created: Locks[] = [];
  beforeAll(async () => {
    connect = await backend.start();
  });
  afterAll(() => backend.stop());
  beforeEach(() => {
    one = createLocks({ store: connect() });
    two = createLocks({ store: connect() });
  });
  afterEach(async () => {
    for (const locks of [one, two, ...created.splice(0)]) await locks.close();
  });

  it('A key works from acquire to release, whatever its characters and its length', async () => {
    await everyRow(pairs, ({ name }) => name, fromAcquireToRelease);
  });

  async function fromAcquireToRelease({ category, key }: (typeof pairs)[number]): Promise<void> {
    const options = { category };
    const own = getLock(key, options);
    const look = async () => {
      const { key: written, holds, waiters } = await own.inspect();
      return { written, holds: holds.map((each) => pathOf(each)), waiters: waiters.map((each) => pathOf(each)) };
    };
    const written = String(key);
    const stops: (() => void)[] = [];
    const queued = new Promise((resolve) => stops.push(two.on('waiting', resolve)));
    await runInTrace(
      async () => {
        const hold = await lock.acquire(key, options);
        expect(hold.key).toBe(written);
        const waiter = runInTrace(
          () => lock.run(key, async ({ fence }) => [fence > hold.fence, await look()], options),
          {
            locks: two,
            traceId: 'waiter',
          },
        );
        const event = await queued;
        stops.pop()?.();
        expect(event).toMatchObject({ key: written, traceId: 'waiter', branch: '' });
        expect(await look()).toEqual({ written, holds: ['holder'], waiters: ['waiter'] });
        expect(await runInTrace(() => lock.tryAcquire(key, options), { traceId: 'third' })).toBeNull();
        await hold.release();
        expect(await waiter).toEqual([true, { written, holds: ['waiter'], waiters: [] }]);
        expect(await look()).toEqual({ written, holds: [], waiters: [] });
      },
      { locks: one, traceId: 'holder' },
    );
  }

  it('Different keys are different locks: all of these are held at once, each by its own owner', async () => {
    let arrived = 0;
    const all = gate();
    const held = pairs.map(({ category, key }, index) =>
      runInTrace(
        async () => {
          const hold = await lock.tryAcquire(key, { category });
          arrived += 1;
          if (arrived === pairs.length) all.open();
          await all;
          const { holds, waiters } = await getLock(key, { category }).inspect();
          return [hold !== null, holds.map((each) => pathOf(each)), waiters.length];
        },
        { locks: index % 2 === 0 ? one : two, traceId: `trace-${index}` },
      ),
    );
    expect(await Promise.all(held)).toEqual(pairs.map((_, index) => [true, [`trace-${index}`], 0]));
  });
});
