import { join } from 'node:path';
import type { Redis } from 'ioredis';
import type { LockStore } from '../../../../../src/core/model/store.ts';
import { RedisStore } from '../../../../../src/stores/redis/redis-store.ts';
import { runScript } from '../../../../support/processes/processes.ts';
import { useCluster } from '../../../../support/redis/cluster-stage.ts';
import { useRedis } from '../../../../support/redis/redis-stage.ts';
import { until } from '../../../../support/until.ts';

/** Each write to the server, as the scripts' hold ids that it has. */
type Writes = string[][];

type Asks = Record<'acquire' | 'release' | 'renew', (name: string) => Promise<unknown>>;

describe('The calls of one round', () => {
  const stage = useRedis();
  let client: Redis;
  let writes: Writes;
  let asks: Asks;

  beforeEach(async () => {
    client = stage.connect();
    asks = asksOf(new RedisStore({ client }));
    // They are known to the server: each is one EVALSHA.
    for (const name of ['acquire', 'renew', 'release'] as const) await asks[name]('known');
    writes = seen(client);
  });

  it('A single call is written at once', async () => {
    const answer = asks.acquire('a');
    expect(writes).toEqual([['a']]);
    await answer;
  });

  it.each([
    ['acquire', 'acquire'],
    ['acquire', 'release'],
    ['release', 'release'],
    ['release', 'acquire'],
    ['release', 'renew'],
  ] as const)('Calls to %s and to %s are not held back for longer than the round', async (first, second) => {
    const answers = [asks[first]('a'), asks[second]('b')];
    expect(writes).toEqual([['a']]);
    await endOfRound();
    expect(writes).toEqual([['a'], ['b']]);
    await Promise.all(answers);
  });

  it('All calls but the first are written together at the end of the round, also those that one input after the other led to', async () => {
    const answers = ['a', 'b'].map((name) => asks.acquire(name));
    await nextTick();
    answers.push(...['c', 'd'].map((name) => asks.acquire(name)));
    await nextTick();
    expect(writes).toEqual([['a']]);
    await endOfRound();
    expect(writes).toEqual([['a'], ['b', 'c', 'd']]);
    await Promise.all(answers);
  });

  it('Many calls are written sixteen at a time', async () => {
    const answers = Array.from({ length: 36 }, (_, index) => asks.acquire(String(index)));
    await endOfRound();
    expect(writes.map(({ length }) => length)).toEqual([1, 14, 16, 5]);
    await Promise.all(answers);
  });

  it('While the server has eight calls to answer, all calls of a round are written together', async () => {
    stage.server.pause();
    const answers = Array.from({ length: 7 }, (_, index) => asks.acquire(String(index)));
    await endOfRound();
    writes.length = 0;
    answers.push(asks.acquire('a'));
    expect(writes).toEqual([['a']]);
    await endOfRound();
    answers.push(...['b', 'c'].map((name) => asks.acquire(name)));
    expect(writes).toEqual([['a']]);
    await endOfRound();
    expect(writes).toEqual([['a'], ['b', 'c']]);
    stage.server.resume();
    await Promise.all(answers);
  });

  it.each([
    ['of a job are released if the process exits at its end', 'end'],
    ['that a listener of `exit` releases are released', 'listener'],
  ])('All holds %s', async (_, mode) => {
    const args = [String(stage.server.port), mode];
    const result = await runScript(join(__dirname, 'exit-client.ts'), { args });
    expect(result).toEqual({ code: 0, stdout: '', stderr: '' });
    const store = new RedisStore({ client });
    for (const id of ['a', 'b', 'c']) await until(async () => (await store.inspect(id)).holds.length === 0);
  });

  it("Calls do not wait for what an application's test has put in the place of setImmediate", async () => {
    jest.spyOn(globalThis, 'setImmediate').mockImplementation();
    await Promise.all([asks.release('a'), asks.acquire('b')]);
  });

  it('Calls are written if the package was loaded under fake timers, as by `enableGlobally` in the configuration of jest', async () => {
    jest.useFakeTimers();
    try {
      await jest.isolateModulesAsync(async () => {
        const loaded = await import('../../../../../src/stores/redis/redis-store.ts');
        const late = asksOf(new loaded.RedisStore({ client }));
        await Promise.all([late.release('a'), late.acquire('b')]);
      });
    } finally {
      jest.useRealTimers();
    }
  });

  it('Calls are not held back after a connection that was lost meanwhile', async () => {
    const lost = Promise.allSettled([asks.release('a'), asks.acquire('b')]);
    await endOfRound();
    client.disconnect(true);
    await lost;
    await client.ping();
    writes = seen(client);
    const answer = asks.acquire('c');
    expect(writes).toEqual([['c']]);
    await answer;
  });
});

describe('The calls of one round on a cluster', () => {
  const stage = useCluster();

  it('All calls to one server but the first are written together, whatever is written to others', async () => {
    const asks = asksOf(stage.store);
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    // They are known to the servers: each is one EVALSHA.
    for (const name of names) await asks.acquire(name);
    const primaries = stage.client.nodes('master');
    const writesOf = primaries.map((node) => seen(node));
    const answers = names.map((name) => asks.acquire(name));
    await endOfRound();
    const portOf = async (name: string) => (await stage.cluster.serversOf(`reenlock:{${name}}`)).primary.port;
    const ports = await Promise.all(names.map(portOf));
    for (const [place, { options }] of primaries.entries()) {
      const [first, ...rest] = names.filter((_, i) => ports[i] === options.port);
      expect(writesOf[place]).toEqual(rest.length > 0 ? [[first], rest] : first === undefined ? [] : [[first]]);
    }
    expect(new Set(ports).size).toBeGreaterThan(1);
    expect(new Set(ports).size).toBeLessThan(names.length);
    await Promise.all(answers);
  });
});

function asksOf(store: LockStore): Asks {
  const of = (name: string) => ({
    id: name,
    holdId: `hold-${name}`,
    owner: 'owner',
    process: 'process',
    mode: 'write' as const,
    priority: 0,
    claimMs: 3_000,
  });
  const terms = { leaseMs: 30_000, queue: true, maxWaiters: 10, livenessMs: 5_000 };
  return {
    acquire: (name) => store.acquire(of(name), terms),
    release: (name) => store.release(of(name), { tombstoneMs: 30_000 }),
    renew: (name) => store.renew(of(name), { fence: 1, leaseMs: 30_000 }),
  };
}

/** Seen below the stream, where what is corked has not come yet. */
function seen(client: Redis): Writes {
  const writes: Writes = [];
  const socket = client.stream as unknown as Record<
    '_write' | '_writev',
    (chunks: unknown, ...rest: unknown[]) => void
  >;
  const { _write: write, _writev: writev } = socket;
  const note = (chunks: readonly string[]): void => {
    writes.push(chunks.flatMap((chunk) => Array.from(chunk.matchAll(/hold-(\w+)/g), ([, name = '']) => name)));
  };
  socket._write = function (chunk, ...rest) {
    note([String(chunk)]);
    write.call(this, chunk, ...rest);
  };
  socket._writev = function (chunks, ...rest) {
    note((chunks as { chunk: unknown }[]).map(({ chunk }) => String(chunk)));
    writev.call(this, chunks, ...rest);
  };
  return writes;
}

function endOfRound(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
