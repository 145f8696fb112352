import { watchLeaks } from '../support/processes/leaks.ts';
import { type Client, Lab } from './lab.ts';
import { isLong, printSeed, seed, seeded } from './seed.ts';

watchLeaks();
printSeed('soak');

/** `scripts/soak.mjs` sets the minutes. */
const soakMs = Number(process.env.SOAK_MINUTES ?? (isLong ? 1 : 0.05)) * 60_000;
const keys = ['order:1', 'order:2', 'order:3'];
const settings = { leaseMs: 1_000, claimMs: 400, pollMs: 100, storeTimeoutMs: 500, waitMs: 5_000 };
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** One thing after the other goes wrong; which, and for how long, follows from the seed. */
class Soak {
  readonly counts = new Map<string, number>();
  readonly random: () => number = seeded(seed);
  readonly #lab: Lab;
  readonly #untilMs: number = performance.now() + soakMs;
  readonly #working = new Map<Client, Promise<number | undefined>>();

  constructor(lab: Lab) {
    this.#lab = lab;
  }

  async run(): Promise<void> {
    for (let n = 0; n < 3; n++) await this.#join();
    const faults = Object.entries(this.#faults());
    while (performance.now() < this.#untilMs) {
      const [name, spoil] = faults[Math.floor(this.random() * faults.length)] as [string, () => unknown];
      this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
      await spoil();
      await pause(300 * this.random());
    }
    this.#lab.proxy.heal();
    await Promise.all(this.#working.values());
  }

  #faults(): Record<string, () => unknown> {
    const { proxy, server, admin } = this.#lab;
    const ms = () => 1_500 * this.random();
    const some = () => [...this.#working.keys()][Math.floor(this.random() * this.#working.size)] as Client;
    return {
      'a process stopped': async () => {
        const client = some();
        client.pause();
        await pause(ms());
        client.resume();
      },
      'a process killed': async () => {
        const client = some();
        await client.kill();
        await this.#working.get(client);
        this.#working.delete(client);
        await this.#join();
      },
      'the server stopped': async () => {
        server.pause();
        await pause(ms());
        server.resume();
      },
      'the server killed and started': async () => {
        await server.kill();
        await server.restart();
      },
      'connections reset': () => proxy.cut(),
      'messages cut': () => admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub'),
      'scripts forgotten': () => admin.script('FLUSH'),
      'a reply lost': () => void proxy.loseReply(([name = '']) => /^eval/i.test(name)),
      'half-open connections': async () => {
        proxy.halfOpen();
        await pause(ms());
        proxy.heal();
        proxy.cut();
      },
      'slow connections': async () => {
        proxy.delay(200, this.random);
        await pause(ms());
        proxy.heal();
      },
    };
  }

  async #join(): Promise<void> {
    const client = await this.#lab.client(settings);
    // It is disturbed from the first to the last.
    client.disturbed();
    const ms = Math.max(0, this.#untilMs - performance.now());
    const work = client.work(keys, 2, ms, seed, { holdMs: 30 }).then(
      (count) => count,
      () => undefined, // Killed: how many it had is in the history.
    );
    this.#working.set(client, work);
  }
}

it(
  'through random faults, one after the other, with appendfsync always: one owner, rising fences, each hold given back once',
  async () => {
    const lab = await Lab.start(['--appendonly', 'yes', '--appendfsync', 'always']);
    try {
      const soak = new Soak(lab);
      await soak.run();
      const history = await lab.end({ fifo: false });
      const count = (kind: string) => history.filter((entry) => entry.kind === kind).length;
      const figures = { ms: soakMs, granted: count('granted'), lost: count('lost'), refused: count('refused') };
      process.stdout.write(`soak: ${JSON.stringify({ ...figures, faults: Object.fromEntries(soak.counts) })}\n`);
      expect(figures.granted).toBeGreaterThan(0);
    } finally {
      await lab.stop();
    }
  },
  2 * soakMs + 60_000,
);
