import { backends } from './backends.ts';
import { isLong, isWhole, printSeed, seed, seeded } from './seed.ts';
import { Soak } from './soak.ts';

printSeed('soak');

/** `scripts/soak.mjs` sets the minutes and the store. */
const soakMs = Number(process.env.SOAK_MINUTES ?? (isLong ? 1 : 0.04)) * 60_000;
const names = Object.keys(backends);
const others = names.filter((name) => name !== 'redis');
const oneOf = (all: readonly string[]) => all[seed % all.length] as string;
/** One of them by the seed; in the whole matrix Redis and another one; in the long form all. */
const some = isLong ? names : isWhole ? ['redis', oneOf(others)] : [oneOf(names)];
const chosen = process.env.SOAK_STORE === undefined ? some : names.filter((name) => name === process.env.SOAK_STORE);

it.each(chosen)(
  'Through random faults, up to three at once, locks on %s have one owner, rising fences, and one release for each hold',
  async (name) => {
    const random = seeded(seed);
    const backend = await (backends[name] as (typeof backends)[string])(random);
    const soak = new Soak(backend, random);
    try {
      await soak.run(soakMs);
      const figures = await soak.end();
      process.stdout.write(`soak: ${JSON.stringify({ store: name, ms: soakMs, ...figures })}\n`);
      expect(figures.granted).toBeGreaterThan(0);
    } finally {
      await soak.stop();
      await backend.stop();
    }
  },
  3 * soakMs + 120_000,
);
