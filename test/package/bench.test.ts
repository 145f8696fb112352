import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { packPackage, root } from './packed.ts';

test("The benchmarks' own arithmetic passes its tests", () => {
  const folder = join(root, 'bench/test');
  const files = readdirSync(folder).map((file) => join(folder, file));
  const args = ['--test', '--test-reporter=tap', ...files];
  const env = { ...process.env, BENCH_BUILD: join(packPackage().unpacked, 'dist') };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
  expect({ status, output: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, output: '' });
  expect(Number(stdout.match(/^# pass (\d+)$/m)?.[1])).toBeGreaterThan(30);
});
