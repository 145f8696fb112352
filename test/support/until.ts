import { setTimeout as sleep } from 'node:timers/promises';

declare global {
  /** How long helpers wait in the current test; `test/support/jest/environment.cjs` sets it. */
  var patienceMs: number | undefined;
}

/** The longest pause between two looks; after a short wait it is a tenth of that wait. */
const restMs = 20;

/** How long a helper waits for something that must happen: two thirds of the current test's timeout. */
export function patienceOfTest(): number {
  return globalThis.patienceMs ?? 10_000;
}

/**
 * Looks again and again until what it sees fits, by default until it is truthy, and returns that. For what no event tells
 * of. Rejects with what it saw last if that never fits.
 */
export async function until<T>(
  look: () => T | Promise<T>,
  fits: (seen: T) => boolean = Boolean,
  describe: (seen: T) => unknown = (seen) => `${look} saw ${JSON.stringify(seen)}`,
): Promise<T> {
  const start = performance.now();
  while (true) {
    const seen = await look();
    if (fits(seen)) return seen;
    const waitedMs = performance.now() - start;
    if (waitedMs > patienceOfTest()) throw new Error(`It did not happen: ${await describe(seen)}`);
    // What is waited for may need the processor, and so may the suite beside this one.
    await sleep(Math.min(waitedMs / 10, restMs));
  }
}
