import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { matrix } from '../support/matrix.ts';
import { createConsumer, packPackage, root, runBinary } from './packed.ts';

let consumer: ReturnType<typeof createConsumer>;
const folder = () => join(consumer.folder, 'bundled');

beforeAll(() => {
  consumer = createConsumer(packPackage(), {
    'prom-client': 'node_modules/prom-client',
    '@opentelemetry': 'node_modules/@opentelemetry',
  });
  cpSync(join(__dirname, 'consumers/bundled'), folder(), { recursive: true });
});
afterAll(() => consumer?.remove());

const esbuild = ['main.mjs', '--bundle', '--platform=node', '--log-level=error'];
/** Node's own modules are required, also from what esbuild makes of CommonJS. */
const banner = "--banner:js=import{createRequire}from'node:module';const require=createRequire(import.meta.url);";
function runWebpack(path: string): void {
  const output = { path, filename: 'main.cjs' };
  const config = { context: folder(), entry: './main.mjs', target: 'node20', mode: 'production', output };
  const code = `require('webpack')(${JSON.stringify(config)}, (error, stats) => {
    if (error || stats.hasErrors()) { console.error(error ?? stats.toString()); process.exitCode = 1; }
  });`;
  execFileSync('node', ['-e', code], { cwd: root, stdio: 'pipe' });
}

type Bundler = readonly [name: string, file: string, bundle: (out: string) => void];

const bundlers = matrix<Bundler>(
  [
    [
      'esbuild as CommonJS',
      'main.cjs',
      (out) => runBinary('esbuild', [...esbuild, '--format=cjs', `--outfile=${out}/main.cjs`], folder()),
    ],
  ],
  () => [
    [
      'esbuild as a module',
      'main.mjs',
      (out) => runBinary('esbuild', [...esbuild, '--format=esm', banner, `--outfile=${out}/main.mjs`], folder()),
    ],
    ['webpack', 'main.cjs', runWebpack],
    ['ncc', 'index.mjs', (out) => runBinary('ncc', ['build', 'main.mjs', '--quiet', '--out', out], folder())],
  ],
);

it.each(bundlers)(
  'An application bundled by %s locks, shows the board and collects metrics',
  (_, file, bundle) => {
    // A bundle is deployed alone: what it looks for outside of itself must not be found by accident.
    const out = mkdtempSync(join(tmpdir(), 'reenlock-bundle-'));
    bundle(out);
    expect(execFileSync('node', [join(out, file)], { encoding: 'utf8', timeout: 20_000, cwd: out })).toBe('ok\n');
    rmSync(out, { recursive: true });
  },
  60_000,
);
