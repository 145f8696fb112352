import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './packed.ts';

const passing = 'test/http/context/rtracer-first.test.ts';
const own = process.versions.node;

/** Runs `npm run test:nodes` without a registry, so that the running version is the only one to be had. */
function testNodes(...args: string[]): { status: number | null; summary: string[] } {
  const env = { ...process.env, npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' };
  const { status, stdout } = spawnSync(process.execPath, [join(root, 'scripts/test-nodes.mjs'), ...args], {
    env,
    encoding: 'utf8',
  });
  return { status, summary: stdout.split('\n').filter((line) => line.startsWith('Node ')) };
}

describe('npm run test:nodes', () => {
  it('npm run test:nodes says which version ran, and that its suites passed', () => {
    const major = own.split('.')[0] as string;
    expect(testNodes(major, passing)).toEqual({ status: 0, summary: [`Node ${major} (v${own}): passed`] });
  });

  it('npm run test:nodes fails with a suite, and with a version that is unavailable, and runs the others', () => {
    const { status, summary } = testNodes('1.2.3', own, 'test/no-such-suite');
    expect(status).toBe(1);
    expect(summary).toEqual([
      expect.stringMatching(/^Node 1\.2\.3: not tested: npm can't install node-\w+-\w+@1\.2\.3: .*ECONNREFUSED/),
      `Node ${own} (v${own}): failed (exit code 1)`,
    ]);
  });
});
