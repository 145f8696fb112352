import { patienceOfTest } from './until.ts';

const shown = 5;

/**
 * Checks each row, one after the other, and fails with the names of those that failed, and why: one test for what would
 * be hundreds of small ones. It ends at a row that does not end, and after some failures.
 */
export async function everyRow<T>(
  rows: readonly T[],
  nameOf: (row: T) => string,
  check: (row: T) => unknown,
): Promise<void> {
  const failures: string[] = [];
  const deadline = performance.now() + patienceOfTest();
  for (const row of rows) {
    try {
      await within(deadline - performance.now(), async () => check(row));
    } catch (error) {
      failures.push(`${nameOf(row)}: ${error instanceof Error ? error.message : error}`);
      if (failures.length === shown || performance.now() > deadline) break;
    }
  }
  if (failures.length > 0) throw new Error([`Of ${rows.length} rows failed`, ...failures].join('\n\n'));
}

async function within(ms: number, work: () => Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('It did not end in time')), Math.max(ms, 0));
  });
  await Promise.race([work(), late]).finally(() => clearTimeout(timer));
}
