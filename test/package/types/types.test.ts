import { join } from 'node:path';
import { root, runBinary } from '../packed.ts';

describe.each(['express', 'koa'])('the types of reenlock/%s', (framework) => {
  it.each([
    ['as strict as can be', []],
    ['with the plain strict mode', ['--noUncheckedIndexedAccess', 'false', '--exactOptionalPropertyTypes', 'false']],
  ])('let a guarded route compile, and refuse mistakes, %s', (_, flags) => {
    runBinary('tsc', ['-p', join(root, 'test/package/types', framework), ...flags]);
  });
});
