import { join } from 'node:path';
import { root, runBinary } from '../packed.ts';

describe.each([
  ['standard decorators', 'tsconfig.json'],
  ['experimentalDecorators, with their metadata', 'tsconfig.legacy.json'],
])('the types of @Locked under %s', (_, config) => {
  it.each([
    ['as strict as can be', []],
    ['with the plain strict mode', ['--noUncheckedIndexedAccess', 'false', '--exactOptionalPropertyTypes', 'false']],
  ])('take the key function from the method, and refuse mistakes, %s', (_, flags) => {
    runBinary('tsc', ['-p', join(root, 'test/package/types/decorators', config), ...flags]);
  });
});
