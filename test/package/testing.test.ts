import { execFileSync } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createConsumer, packPackage, root } from './packed.ts';

describe('The test kit of the published package', () => {
  let consumer: ReturnType<typeof createConsumer>;
  beforeAll(() => {
    consumer = createConsumer(packPackage());
    cpSync(join(__dirname, 'consumers/testing'), consumer.folder, { recursive: true });
    symlinkSync(join(root, 'node_modules/vitest'), join(consumer.folder, 'node_modules/vitest'));
  });
  afterAll(() => consumer?.remove());

  const bin = (name: string): string => join(root, 'node_modules/.bin', name);

  it.each<[string, string, string[], RegExp]>([
    [
      'jest',
      bin('jest'),
      ['--config', '{"testMatch":["**/jest.test.cjs"]}', '--rootDir', '.'],
      /Tests: +2 passed, 2 total/,
    ],
    ['vitest', bin('vitest'), ['run', 'vitest.test.mjs'], /Tests +2 passed \(2\)/],
    ['node:test', process.execPath, ['--test', 'node.test.mjs'], /pass 2\n.*fail 0/],
  ])('works under %s, and under its fake timers', (_, command, args, passed) => {
    expect(run(command, args, consumer.folder)).toMatch(passed);
  });
});

/** Runs a test runner without this one's environment; returns what it printed, also if it failed. */
function run(command: string, args: readonly string[], cwd: string): string {
  const { NODE_OPTIONS: _, JEST_WORKER_ID: __, NODE_TEST_CONTEXT: ___, ...env } = process.env;
  try {
    const colorless = { ...env, NO_COLOR: '1', FORCE_COLOR: '0', CI: 'true' };
    return execFileSync('sh', ['-c', 'exec "$0" "$@" 2>&1', command, ...args], {
      cwd,
      encoding: 'utf8',
      env: colorless,
    });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
