// Writes src/core/base/address.generated.ts from `repository` in package.json: errors and warnings name a page at that address,
// or in the installed package while there is none. With --check nothing is written.

import { join } from 'node:path';
import { addressOf, filesAt, manifest } from './lib/address.mjs';
import { generate, root } from './lib/generated.mjs';

generate({
  script: import.meta.filename,
  output: join(root, 'src/core/base/address.generated.ts'),
  sources: '`repository` and `version` in package.json',
  build: buildModule,
});

function buildModule() {
  const address = addressOf(manifest);
  const pages = address === undefined ? 'node_modules/reenlock/' : filesAt(address, manifest).pages;
  return `// Generated from package.json by \`node scripts/build-address.mjs\`. Do not edit.
export const pagesAt = '${pages}';
`;
}
