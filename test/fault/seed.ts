import { isMatrix } from '../support/matrix.ts';

/** Whether the long form was asked for. */
export const isLong: boolean = process.env.FAULTS === 'long';

/** Whether each kind of play is asked for. Otherwise a run takes a part of them, by its seed. */
export const isWhole: boolean = isLong || isMatrix;

/** What all that is random begins with: given by `FAULT_SEED`, or new in every run. */
export const seed: number = Number(process.env.FAULT_SEED ?? Math.floor(Math.random() * 2 ** 31));

/**
 * Says how to run a file's tests again in the same way, and gives those of the long form their time. Call it at the top
 * level of the file.
 */
export function printSeed(file: string): void {
  if (isLong) jest.setTimeout(600_000);
  beforeAll(() => {
    process.stdout.write(`${file}: FAULT_SEED=${seed}${isLong ? ' FAULTS=long' : ''}\n`);
  });
}

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function seeded(from: number): () => number {
  let state = from | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
