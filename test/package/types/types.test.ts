import { join } from 'node:path';
import { runBinary } from '../packed.ts';

// That they are right for code as strict as can be is shown by `npm run typecheck`, which has them in its programs.
const plainStrict = ['--noUncheckedIndexedAccess', 'false', '--exactOptionalPropertyTypes', 'false'];
const legacy = 'decorators/tsconfig.legacy.json';
const nest = '../../../tsconfig.nest.json';
const ownNames = 'own-names/tsconfig.json';

it.each<[string, string, string[]]>([
  ['with the plain strict mode', 'tsconfig.json', plainStrict],
  ['with experimentalDecorators and their metadata', legacy, []],
  ['in Nest, with the plain strict mode', nest, plainStrict],
  ['in an application that has a `lock` of its own on its requests', ownNames, []],
  ['with experimentalDecorators, their metadata and the plain strict mode', legacy, plainStrict],
])('The types of guards and of `@Locked` let right code compile, and refuse mistakes, %s', (_, config, flags) => {
  runBinary('tsc', ['-p', join(__dirname, config), ...flags]);
});
