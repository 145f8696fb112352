import { until } from '../support/until.ts';
import type { Client, Refusal } from './crew.ts';
import { Lab } from './lab.ts';
import { isLong, printSeed, seed, seeded } from './seed.ts';

printSeed('races');

const key = 'order:42';

describe('Simultaneous events', () => {
  let lab: Lab;
  beforeEach(async () => {
    lab = await Lab.start();
  });
  afterEach(() => lab.stop());

  it('A release that races a renewal ends the hold, once, and the renewal does not bring it back', async () => {
    const all = await lab.clients(2, { leaseMs: 100, pollMs: 100 });
    // A renewal is due every 30 ms: some are on their way when the release begins.
    const workMs = isLong ? 20_000 : 1_500;
    const work = () => all.map((client, n) => client.work([key, 'order:43'], 2, workMs, seed + n, { holdMs: 70 }));
    const renewals = () => lab.history.filter(({ kind }) => kind === 'renewed').length;
    // On a busy machine few are in time.
    do expect(Math.min(...(await Promise.all(work())))).toBeGreaterThan(0);
    while (renewals() <= 5);
    await lab.end({ fifo: false });
  });

  it('A waiter that gives up at the instant of its grant leaves the key free, whichever was first', async () => {
    const [a, b] = (await lab.clients(2)) as [Client, Client];
    const random = seeded(seed);
    const outcomes = new Set<string>();
    // The instant that is aimed at: how long a release is on its way, the machine says.
    let aimMs = 30;
    for (let n = 0; n < (isLong ? 500 : 40) || outcomes.size < 2; n++) {
      const first = await a.acquire(key);
      const waiter = b.acquire(key, { waitMs: 40 }).then(
        async (hold) => {
          await hold.release();
          return 'granted';
        },
        (refusal: Refusal) => refusal.code,
      );
      await new Promise((resolve) => setTimeout(resolve, aimMs - 5 + 10 * random()));
      await first.release();
      const outcome = await waiter;
      outcomes.add(outcome);
      aimMs += outcome === 'granted' ? 1 : -1;
    }
    expect(outcomes).toEqual(new Set(['granted', 'ERR_LOCK_TIMEOUT']));
    await until(async () => (await lab.known(key)).holders.length === 0);
    await lab.end({ maxPolls: 2 });
  });

  const count = isLong ? 400 : 100;

  /** As many holds, and as many who wait for another's key. */
  async function crowd(): Promise<{ busy: Client; other: Client; refused: Promise<string[]> }> {
    const [busy, other] = (await lab.clients(2)) as [Client, Client];
    await other.acquire('taken');
    const holds = Array.from({ length: count }, (_, n) => busy.acquire(`order:${n}`));
    await Promise.all(holds);
    const waiters = Array.from({ length: count }, () => busy.acquire('taken', { waitMs: 60_000 }));
    const refused = Promise.all(
      waiters.map((waiter) =>
        waiter.then(
          () => 'granted',
          (refusal: Refusal) => refusal.code,
        ),
      ),
    );
    await until(async () => (await lab.known('taken')).waiters.length === count);
    return { busy, other, refused };
  }

  it('[races-01] SIGTERM, with close and its drain: every hold is released, every waiter refused, and the process ends by itself', async () => {
    const { busy, other, refused } = await crowd();
    const { code, stderr } = await busy.kill('SIGTERM');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(new Set(await refused)).toEqual(new Set(['ERR_LOCK_CLOSED']));
    // At once: nobody waits for a lease.
    const next = Array.from({ length: count }, (_, n) => other.acquire(`order:${n}`, { waitMs: 0 }));
    for (const hold of await Promise.all(next)) await hold.release();
    expect((await lab.known('taken')).waiters).toEqual([]);
    await lab.end();
  });

  it('[races-02] close declares lost, and releases, what is still held after drainMs', async () => {
    const { busy, other, refused } = await crowd();
    await busy.close(200);
    expect(new Set(await refused)).toEqual(new Set(['ERR_LOCK_CLOSED']));
    const next = Array.from({ length: count }, (_, n) => other.acquire(`order:${n}`, { waitMs: 0 }));
    for (const hold of await Promise.all(next)) await hold.release();
    const history = await lab.end();
    expect(history.filter(({ kind }) => kind === 'lost')).toHaveLength(count);
  });
});
