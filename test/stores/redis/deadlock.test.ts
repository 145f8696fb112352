import { join } from 'node:path';
import { createLocks, DeadlockError, type Hold, type Locks, lock } from 'reenlock';
import { type Script, startScript } from '../../support/processes/processes.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { type Job, type Outcome, outcomeOf, startJob } from '../../support/stores/set-up.ts';
import { until } from '../../support/until.ts';
import type { Order, Told } from './processes/trader.ts';

const file = join(__dirname, 'processes/trader.ts');

describe('on a server with five processes', () => {
  const stage = useRedis();
  let traders: Trader[];
  beforeAll(() => {
    traders = Array.from({ length: 5 }, () => new Trader(stage.server.url));
  });
  afterAll(() => Promise.all(traders.map((trader) => trader.stop())));

  it('a ring of one trace in each has one victim, which names all of it, and the others get through', async () => {
    const waits: Queued[] = [];
    for (const [n, trader] of traders.entries()) await trader.acquire(`ring-${n}`, `k${n}`, `trace-${n}`);
    // Queued in another order than that of the ring; the third one closes it.
    for (const n of [1, 4, 0, 3, 2]) waits[n] = await traders[n]!.queue(`ring-${n}`, `k${(n + 1) % 5}`);
    expect(await waits[2]!.answer).toMatchObject({
      kind: 'refused',
      code: 'ERR_LOCK_DEADLOCK',
      cycle: [2, 3, 4, 0, 1].map((n) => ({ traceId: `trace-${n}`, key: `k${(n + 1) % 5}` })),
    });
    for (const n of [2, 1, 0, 4, 3]) {
      if (n !== 2) expect(await waits[n]!.answer).toMatchObject({ kind: 'done' });
      await traders[n]!.end(`ring-${n}`);
    }
  });

  it('two traces that take each other’s key at the same moment have one victim, time after time', async () => {
    const [one, two] = traders as [Trader, Trader];
    for (let round = 0; round < 20; round++) {
      const [a, b] = [`a${round}`, `b${round}`];
      await Promise.all([one.acquire(a, a), two.acquire(b, b)]);
      const answers = [one.ask(a, b), two.ask(b, a)];
      const first = await Promise.race(answers);
      expect(first).toMatchObject({ kind: 'refused', code: 'ERR_LOCK_DEADLOCK' });
      const isOne = (await Promise.race([answers[0], Promise.resolve(undefined)])) !== undefined;
      await (isOne ? one.end(a) : two.end(b));
      expect(await answers[isOne ? 1 : 0]).toMatchObject({ kind: 'done' });
      await (isOne ? two.end(b) : one.end(a));
    }
  });

  it('a called service that holds nothing itself is found to wait for its caller', async () => {
    const [caller, service, other] = traders as [Trader, Trader, Trader];
    await caller.acquire('caller', 'order', 'trace');
    await other.acquire('other', 'stock', 'another');
    const waits = await other.queue('other', 'order');
    const called = await service.queue('called', 'stock', 'trace');
    expect(await called.answer).toMatchObject({
      code: 'ERR_LOCK_DEADLOCK',
      cycle: [
        { traceId: 'trace', key: 'stock' },
        { traceId: 'another', key: 'order' },
      ],
    });
    await service.end('called');
    await caller.end('caller');
    expect(await waits.answer).toMatchObject({ kind: 'done' });
    await other.end('other');
  });

  it('leaves no edge behind, and those of a process that was killed go by themselves', async () => {
    const doomed = new Trader(stage.server.url);
    const [other] = traders as [Trader];
    await other.acquire('other', 'stock');
    await doomed.acquire('doomed', 'order', 'trace');
    const { answer } = await doomed.queue('doomed', 'stock');
    const unanswered = expect(answer).rejects.toThrow('without the awaited message');
    const key = 'reenlock:{trace}:edges';
    await until(async () => (await stage.client.zcard(key)) === 1);
    doomed.kill();
    await doomed.stop();
    await unanswered;
    await other.end('other');
    const ttlMs = await stage.client.pttl(key);
    // It has one, unless it is gone by now.
    expect(ttlMs).not.toBe(-1);
    // waitMs + 3 × pollMs + storeTimeoutMs
    expect(ttlMs).toBeLessThanOrEqual(62_300);
    await stage.client.del(key);
    expect(await stage.client.keys('*:edges')).toEqual([]);
  });
});

describe('on Redis', () => {
  const stage = useRedis();
  let locks: Locks;
  let jobs: Job[];
  beforeEach(() => {
    jobs = [];
    locks = createLocks({ store: stage.store, pollMs: 60_000, waitMs: 60_000 });
  });
  afterEach(async () => {
    for (const job of jobs) await job.end();
    await locks.close({ drainMs: 0 });
  });

  const job = (traceId?: string): Job => {
    jobs.push(startJob(locks, traceId));
    return jobs.at(-1)!;
  };
  const queued = async (waiter: Job, key: string): Promise<Outcome<Hold>> => {
    const isQueued = new Promise<void>((resolve) => locks.on('waiting', () => resolve()));
    const outcome = outcomeOf(waiter.in(() => lock.acquire(key)));
    await isQueued;
    return outcome;
  };
  const scripts = async (): Promise<number> =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await stage.client.info('commandstats'))?.[1] ?? 0);

  it('a request of its own trace that holds nothing pays one call to be queued, and writes no edge', async () => {
    await job().in(() => lock.acquire('key'));
    const before = await scripts();
    await queued(job(), 'key');
    // Whatever it had sent would have come before.
    await stage.client.ping();
    expect((await scripts()) - before).toBe(1);
    expect(await stage.client.keys('*:edges')).toEqual([]);
  });

  it('one that holds a key pays three calls more', async () => {
    await job().in(() => lock.acquire('key'));
    const waiter = job();
    await waiter.in(() => lock.acquire('other'));
    const before = await scripts();
    await queued(waiter, 'key');
    // Its edge, its own wait, and what the holder waits for.
    await until(async () => (await scripts()) - before === 4);
    expect(await stage.client.keys('*:edges')).toHaveLength(1);
  });

  it('a ring through one of many readers is found', async () => {
    const readers = Array.from({ length: 20 }, (_, n) => job(`reader-${n}`));
    const writer = job('writer');
    for (const reader of readers) await reader.in(() => lock.acquire('shared', { mode: 'read' }));
    await writer.in(() => lock.acquire('key'));
    const first = await queued(readers[13]!, 'key');
    await until(async () => (await stage.client.keys('*:edges')).length === 1);
    const last = await queued(writer, 'shared');
    await last.settled;
    expect((last.error as DeadlockError).cycle).toEqual([
      { traceId: 'writer', key: 'shared' },
      { traceId: 'reader-13', key: 'key' },
    ]);
    await writer.end();
    await first.settled;
    expect(first.state).toBe('fulfilled');
  });

  it('keys and traces of any characters close a ring, and a key as it was written is named', async () => {
    const keys = ['{a} b%|\n', `${'long'.repeat(300)} "ü"`] as const;
    const [one, two] = [job('a.b_c-d'), job()];
    await one.in(() => lock.acquire(keys[0]));
    await two.in(() => lock.acquire(keys[1]));
    const first = await queued(one, keys[1]);
    await until(async () => (await stage.client.keys('*:edges')).length === 1);
    const last = await queued(two, keys[0]);
    await last.settled;
    const { error } = last;
    expect(error).toBeInstanceOf(DeadlockError);
    expect((error as DeadlockError).cycle).toMatchObject([{ key: keys[0] }, { traceId: 'a.b_c-d', key: keys[1] }]);
    await two.end();
    await first.settled;
    expect(first.state).toBe('fulfilled');
  });
});

/** An order whose answer comes later. */
interface Queued {
  readonly answer: Promise<Told>;
}

/** One process, as the test tells it what to do. */
class Trader {
  readonly #script: Script;
  #last = 0;

  constructor(url: string) {
    this.#script = startScript(file, { args: [url], timeoutMs: 120_000 });
  }

  /** Takes a key that is free. */
  async acquire(job: string, key: string, traceId?: string): Promise<void> {
    expect(await this.ask(job, key, traceId)).toMatchObject({ kind: 'done' });
  }

  /** Asks for a key that is not free; the answer comes later. */
  async queue(job: string, key: string, traceId?: string): Promise<Queued> {
    const answer = this.ask(job, key, traceId);
    await this.#script.once<Told>((told) => told.kind === 'waiting' && told.key === key);
    return { answer };
  }

  async end(job: string): Promise<void> {
    expect(await this.#send({ job })).toMatchObject({ kind: 'done' });
  }

  ask(job: string, key: string, traceId?: string): Promise<Told> {
    return this.#send({ job, key, ...(traceId !== undefined && { traceId }) });
  }

  kill(): void {
    this.#script.kill('SIGKILL');
  }

  async stop(): Promise<void> {
    await this.#script.stop();
  }

  #send(order: Omit<Order, 'id'>): Promise<Told> {
    this.#last += 1;
    const id = this.#last;
    this.#script.send({ ...order, id });
    return this.#script.once<Told>((told) => told.kind !== 'waiting' && told.id === id);
  }
}
