// Writes src/board/page.generated.ts from the files of src/board/page: the board's page is a module, so
// that it is in the bundle of an application that is bundled. With --check nothing is written.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generate, root, templateLiteral } from './lib/generated.mjs';

const board = join(root, 'src/board');

generate({
  script: import.meta.filename,
  output: join(board, 'page.generated.ts'),
  sources: 'files in page',
  build: buildModule,
});

function buildModule() {
  const files = readdirSync(join(board, 'page')).sort();
  const entries = files.map((file) => {
    const text = readFileSync(join(board, 'page', file), 'utf8').replaceAll('\r\n', '\n');
    return `  '${file}': ${templateLiteral(text)},\n`;
  });
  return `// Generated from page/* by \`node scripts/build-page.mjs\`. Do not edit.
export const pageFiles: Readonly<Record<string, string>> = {
${entries.join('')}};
`;
}
