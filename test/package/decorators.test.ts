import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { type Packed, packPackage, runBinary } from './packed.ts';

describe('@Locked of the published package', () => {
  let packed: Packed;
  beforeAll(() => {
    packed = packPackage();
    cpSync(join(__dirname, 'consumers/decorators'), join(packed.consumer, 'decorators'), { recursive: true });
  });
  afterAll(() => packed?.remove());

  it.each([
    ['standard decorators', 'standard', ['service.js']],
    [
      'experimentalDecorators, also in classes that a framework builds by their metadata',
      'legacy',
      ['service.js', 'controller.js'],
    ],
  ])('compiles and locks under %s', (_, mode, files) => {
    const folder = join(packed.consumer, 'decorators');
    runBinary('tsc', ['-p', join(folder, `tsconfig.${mode}.json`)]);
    for (const file of files) {
      const output = execFileSync('node', [join(folder, `out-${mode}`, file)], { encoding: 'utf8', timeout: 20_000 });
      expect([file, output]).toEqual([file, 'ok\n']);
    }
  });
});
