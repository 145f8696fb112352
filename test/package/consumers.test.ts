import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { type Packed, packPackage, runBinary } from './packed.ts';

describe('the published package', () => {
  let packed: Packed;
  beforeAll(() => {
    packed = packPackage();
    cpSync(join(__dirname, 'consumers'), packed.consumer, { recursive: true });
  });
  afterAll(() => packed?.remove());

  const run = (file: string) =>
    execFileSync('node', [join(packed.consumer, file)], { encoding: 'utf8', timeout: 20_000 });

  it.each([
    ['JavaScript with import, on Express', 'esm-js/main.mjs'],
    ['JavaScript with require, on Koa', 'cjs-js/main.cjs'],
  ])('guards a route in %s', (_, file) => {
    expect(run(file)).toBe('ok\n');
  });

  it.each([
    ['ESM, on Koa', 'esm-ts', 'out/main.mjs'],
    ['CommonJS, on Express', 'cjs-ts', 'out/main.js'],
  ])('compiles and guards a route in TypeScript as %s', (_, folder, file) => {
    runBinary('tsc', ['-p', join(packed.consumer, folder)]);
    expect(run(join(folder, file))).toBe('ok\n');
  });

  it('is one package to import and require in one process: the same classes, the same async context', () => {
    expect(run('both/main.mjs')).toBe('ok\n');
  });
});
