import { join } from 'node:path';
import { type Script, startScript } from '../support/processes/processes.ts';
import type { Client } from './crew.ts';
import { Lab } from './lab.ts';
import { isLong, printSeed, seed, seeded } from './seed.ts';

printSeed('ledger');

const leaseMs = 300;
const workMs = isLong ? 15_000 : 1_500;

interface Outcome {
  readonly taken: number;
  readonly balance: number;
}

describe('A balance that is read, changed and written under a lock', () => {
  let lab: Lab;
  let ledger: Script;
  let url: string;
  beforeEach(async () => {
    lab = await Lab.start();
    ledger = startScript(join(__dirname, 'processes/ledger.ts'), { timeoutMs: 600_000 });
    ({ url } = await ledger.once<{ url: string }>());
  });
  afterEach(async () => {
    await lab.stop();
    ledger.kill('SIGKILL');
    await ledger.exited;
  });

  async function play(spoil: (all: readonly Client[], random: () => number) => Promise<unknown>): Promise<Outcome> {
    const all = await lab.clients(3, { leaseMs, pollMs: 100, storeTimeoutMs: 300 });
    const access = { holdMs: 10, ledger: url };
    const work = all.map((client, n) => client.work(['balance'], 2, workMs, seed + n, access));
    const random = seeded(seed);
    for (const until = performance.now() + workMs; performance.now() < until; ) await spoil(all, random);
    const taken = (await Promise.all(work)).reduce((sum, count) => sum + count);
    return { taken, balance: Number(await (await fetch(url)).text()) };
  }

  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  /** The process, perhaps between its read and its write, stands still for longer than its lease. */
  async function stopSomebody(all: readonly Client[], random: () => number): Promise<void> {
    const client = all[Math.floor(random() * all.length)] as Client;
    client.pause();
    await pause(1.5 * leaseMs);
    client.resume();
    await pause(100 * random());
  }

  /** The server starts anew without its data, or loses it at once. */
  async function forget(_: readonly Client[], random: () => number): Promise<void> {
    await pause(20 + 100 * random());
    await lab.admin.flushall();
  }

  const faults = [
    ['its holders are stopped for longer than their lease', stopSomebody],
    ['the server forgets who holds it', forget],
    [
      'connections are reset',
      async () => {
        await pause(50);
        lab.proxy.cut();
      },
    ],
  ] as const;

  // One of them in the short form, which the seed chooses.
  it.each(isLong ? faults : [faults[seed % faults.length] as (typeof faults)[number]])(
    'No update is lost while %s, if the fence goes with the read and the write',
    async (_, spoil) => {
      const { taken, balance } = await play(spoil);
      expect(taken).toBeGreaterThan(0);
      expect(balance).toBe(taken);
    },
  );
});
