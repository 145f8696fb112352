/** Whether the whole matrix of frameworks and client libraries is tested: `MATRIX=all`. */
export const isMatrix: boolean = process.env.MATRIX === 'all';

/** What tests run on: `byDefault`, and in the whole matrix the others, too, which are loaded only then. */
export function matrix<T>(byDefault: readonly T[], others: () => readonly T[]): readonly T[] {
  return isMatrix ? [...byDefault, ...others()] : byDefault;
}
