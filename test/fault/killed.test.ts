import { until } from '../support/until.ts';
import type { Client, RemoteHold } from './crew.ts';
import { Lab } from './lab.ts';
import { isLong, printSeed, seed, seeded } from './seed.ts';

printSeed('killed');

const key = 'order:42';
/** Leases that end within a test; those of the rest last. */
const shortMs = 600;
/** A claim that lapses within a test, and not before a busy machine has come to renew it. */
const claims = { claimMs: 1_500, pollMs: 100 };

describe('Processes that are killed or stopped', () => {
  let lab: Lab;
  beforeEach(async () => {
    lab = await Lab.start();
  });
  afterEach(() => lab.stop());

  /** Acquires of one process, in the order of the queue. */
  async function queue(client: Client, count: number): Promise<Promise<RemoteHold>[]> {
    const before = lab.told(key).size;
    const acquired: Promise<RemoteHold>[] = [];
    for (let n = 0; n < count; n++) {
      acquired.push(client.acquire(key, { waitMs: 60_000 }));
      acquired.at(-1)?.catch(() => {});
    }
    await until(() => lab.told(key).size === before + count);
    return acquired;
  }

  /** Each gives the key back as soon as it has it; answers their fences. */
  function served(acquired: readonly Promise<RemoteHold>[]): Promise<number[]> {
    return Promise.all(
      acquired.map(async (one) => {
        const hold = await one;
        await hold.release();
        return hold.fence;
      }),
    );
  }

  const rising = (fences: readonly number[]) => [...fences].sort((a, b) => a - b);

  it('[killed-01] Without a fault, waiters of three processes are served in order, none with more than two polls', async () => {
    const all = await lab.clients(3);
    const counts = await Promise.all(all.map((client, n) => client.work([key, 'order:43'], 4, 800, seed + n)));
    expect(Math.min(...counts)).toBeGreaterThan(0);
    await lab.end({ maxPolls: 2 });
  });

  it('[killed-02] A killed holder costs the others its lease, and no more: they are served then, in order', async () => {
    const [a, b] = (await lab.clients(2, { pollMs: 100 })) as [Client, Client];
    const first = await a.acquire(key, { leaseMs: shortMs });
    const waiters = await queue(b, 3);
    await a.kill();
    const fences = await served(waiters);
    expect(fences).toEqual(rising(fences));
    expect(Math.min(...fences)).toBeGreaterThan(first.fence);
    await lab.end();
  });

  it('[killed-03] A killed waiter is skipped at once: the waiter behind it does not need two polls', async () => {
    const [a, b, c] = (await lab.clients(3)) as [Client, Client, Client];
    const first = await a.acquire(key);
    const dead = await queue(b, 2);
    const waiters = await queue(c, 2);
    const channels = async () => ((await lab.admin.pubsub('CHANNELS')) as string[]).length;
    const before = await channels();
    await b.kill();
    // The server sees it a moment later.
    await until(async () => (await channels()) < before);
    await first.release();
    await served(waiters);
    for (const one of dead) await expect(one).rejects.toThrow('ended');
    await lab.end({ maxPolls: 1 });
  });

  it('[killed-04] A waiter that is killed between its grant and its first renewal costs the others its claim, not its lease', async () => {
    const [a, b, c] = (await lab.clients(3, { ...claims, claimMs: 4_000 })) as [Client, Client, Client];
    const first = await a.acquire(key);
    const [granted] = await queue(b, 1);
    const waiters = await queue(c, 2);
    // It is reachable still, and does not read any more: as if it were killed on the way.
    b.pause();
    await first.release();
    const { fences, holders } = await lab.known(key);
    expect(holders).toEqual(['p2.1']);
    await b.kill();
    await expect(granted).rejects.toThrow('ended');
    const own = await served(waiters);
    expect(own[0]).toBeGreaterThan(fences[0] as number);
    // In a lease of 30 s there would be 300.
    await lab.end({ maxPolls: 100 });
  });

  it('[killed-05] If half of the waiters are killed, the other half is served, each once and in order', async () => {
    const each = isLong ? 250 : 50;
    const [holder, ...others] = (await lab.clients(5, claims)) as [Client, ...Client[]];
    const first = await holder.acquire(key);
    const random = seeded(seed);
    const doomed = others.toSorted(() => random() - 0.5).slice(0, 2);
    const living: Promise<number[]>[] = [];
    const dying: Promise<unknown>[] = [];
    for (const client of others) {
      const all = served(await queue(client, each));
      if (doomed.includes(client)) dying.push(expect(all).rejects.toThrow('ended'));
      else living.push(all);
    }
    await first.release();
    // In the midst of it.
    await until(async () => (await lab.known(key)).waiters.length < 3.5 * each);
    await Promise.all(doomed.map((client) => client.kill()));
    await Promise.all(dying);
    expect(new Set((await Promise.all(living)).flat()).size).toBe(2 * each);
    await lab.end();
  }, 120_000);

  it('[killed-06] A holder that is stopped for twice its lease has lost the hold when it goes on, and its fence is the smaller one', async () => {
    const [a, b] = (await lab.clients(2, { pollMs: 100 })) as [Client, Client];
    const first = await a.acquire(key, { leaseMs: shortMs });
    const [waiter] = (await queue(b, 1)) as [Promise<RemoteHold>];
    a.pause();
    const second = await waiter;
    await new Promise((resolve) => setTimeout(resolve, shortMs));
    a.resume();
    expect(await first.look()).toMatchObject({ isHeld: false });
    await until(async () => (await first.look()).isAborted);
    expect((await first.look()).events).toContain('lost');
    await expect(first.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    // What it sent when it went on took nothing from the next one.
    expect((await second.look()).isHeld).toBe(true);
    expect(second.fence).toBeGreaterThan(first.fence);
    await second.release();
    await lab.end();
  });

  it('[killed-07] An event loop that is blocked past the lease finds the hold lost before it sends anything', async () => {
    const [a, b] = (await lab.clients(2, { pollMs: 100 })) as [Client, Client];
    const first = await a.acquire(key, { leaseMs: shortMs });
    const [waiter] = (await queue(b, 1)) as [Promise<RemoteHold>];
    const blocked = a.block(2 * shortMs);
    const second = await waiter;
    await blocked;
    expect(await first.look()).toMatchObject({ isHeld: false });
    expect(second.fence).toBeGreaterThan(first.fence);
    expect((await second.look()).isHeld).toBe(true);
    await second.release();
    await expect(first.release()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    await lab.end();
  });

  it('[killed-08] An event loop that is blocked past the lease during an acquire gets an error, and leaves nothing held', async () => {
    const [a, b] = await Promise.all([lab.client({ leaseMs: shortMs }), lab.client({ pollMs: 100 })]);
    // From here on the server knows the script.
    await (await b.acquire('order:43')).release();
    const blocked = a.blockAcquiring(key, 2 * shortMs);
    blocked.catch(() => {});
    // Its record outlasts the short lease.
    await until(async () => (await lab.admin.exists(`reenlock:{${key}}:lock`)) === 1);
    const second = await b.acquire(key);
    expect(await blocked.catch((error: unknown) => error)).toMatchObject({
      code: 'ERR_LOCK_STORE',
      outcome: 'unknown',
    });
    expect((await second.look()).isHeld).toBe(true);
    await second.release();
    await lab.end();
  });

  it('[killed-09] An exception that nobody catches in the critical section ends the process, and the lease ends with it', async () => {
    const [a, b] = (await lab.clients(2, { pollMs: 100 })) as [Client, Client];
    const first = await a.acquire(key, { leaseMs: shortMs });
    const [waiter] = (await queue(b, 1)) as [Promise<RemoteHold>];
    const { code, stderr } = await a.fail();
    expect(code).not.toBe(0);
    expect(stderr).toContain('Failed with a lock held');
    const second = await waiter;
    expect(second.fence).toBeGreaterThan(first.fence);
    await second.release();
    await lab.end();
  });
});
