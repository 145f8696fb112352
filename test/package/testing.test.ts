import { execFileSync } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { matrix } from '../support/matrix.ts';
import { createConsumer, packPackage, root } from './packed.ts';

type Runner = readonly [name: string, command: string, args: readonly string[], counts: RegExp];

describe('The test kit of the published package', () => {
  let consumer: ReturnType<typeof createConsumer>;
  beforeAll(() => {
    consumer = createConsumer(packPackage());
    cpSync(join(__dirname, 'consumers'), consumer.folder, { recursive: true });
    for (const name of ['vitest', 'expect']) {
      symlinkSync(join(root, 'node_modules', name), join(consumer.folder, 'node_modules', name));
    }
  });
  afterAll(() => consumer?.remove());

  const bin = (name: string): string => join(root, 'node_modules/.bin', name);

  /** Each runner, and how it says how many tests passed and failed. */
  const runners = matrix<Runner>(
    [
      [
        'jest',
        bin('jest'),
        ['--config', '{"testMatch":["**/jest.test.cjs"]}', '--rootDir', '.'],
        /Tests: +(?:(?<failed>\d+) failed, )?(?<passed>\d+) passed/,
      ],
    ],
    () => [
      [
        'vitest',
        bin('vitest'),
        ['run', 'vitest.test.mjs'],
        /Tests +(?:(?<failed>\d+) failed \| )?(?<passed>\d+) passed/,
      ],
      ['node:test', process.execPath, ['--test', 'node.test.mjs'], /pass (?<passed>\d+)\n.*fail (?<failed>\d+)/],
    ],
  );

  it.each(runners)('The test kit works under %s, and under its fake timers', (_, command, args, counts) => {
    expect(countsIn(run(command, args, join(consumer.folder, 'testing')), counts)).toEqual({ passed: 2, failed: 0 });
  });

  it.each(runners)(
    'The contract of a store passes a right store under %s, and fails one that breaks a clause',
    (_, command, args, counts) => {
      const folder = join(consumer.folder, 'contract');
      const printed = run(command, args, folder);
      const right = countsIn(printed, counts);
      if (right.failed > 0) throw new Error(`Expected all clauses to pass, got: ${printed}`);
      expect(right.passed).toBeGreaterThan(150);
      const output = run(command, args, folder, { BROKEN: '1' });
      expect(countsIn(output, counts).failed).toBeGreaterThan(10);
      expect(output).toContain('C2 While the lease of one owner lasts, no other owner is granted the key');
    },
  );
});

function countsIn(output: string, pattern: RegExp): { passed: number; failed: number } {
  const { passed, failed = 0 } = pattern.exec(output)?.groups ?? {};
  if (passed === undefined) throw new Error(`Expected counts of tests, got: ${output}`);
  return { passed: Number(passed), failed: Number(failed) };
}

/** Runs a test runner without this one's environment; returns what it printed, also if it failed. */
function run(command: string, args: readonly string[], cwd: string, more: Record<string, string> = {}): string {
  const { NODE_OPTIONS: _, JEST_WORKER_ID: __, NODE_TEST_CONTEXT: ___, ...env } = process.env;
  try {
    const colorless = { ...env, NO_COLOR: '1', FORCE_COLOR: '0', CI: 'true', ...more };
    return execFileSync('sh', ['-c', 'exec "$0" "$@" 2>&1', command, ...args], {
      cwd,
      encoding: 'utf8',
      env: colorless,
    });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
