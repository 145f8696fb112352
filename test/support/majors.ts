/** Whether older major versions of frameworks and clients are tested as well: `FRAMEWORKS=all`. */
const isAll = process.env.FRAMEWORKS === 'all';

/** What tests run on: the newest major versions, then, if all are asked for, the older ones, which are loaded only then. */
export function majors<T>(newest: readonly T[], older: () => readonly T[]): readonly T[] {
  return isAll ? [...newest, ...older()] : newest;
}
