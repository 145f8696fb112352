// Writes src/core/stores/redis/scripts.generated.ts from src/core/stores/redis/lua/*.lua, one constant an operation.
// A file whose name starts with an underscore is included where another says `--@include _name`.
// With --check nothing is written: exit code 1 says that the committed module is not what the sources give.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'src/core/stores/redis/lua');
const output = join(root, 'src/core/stores/redis/scripts.generated.ts');

try {
  main();
} catch (error) {
  console.error(`build-lua: ${error.message}`);
  process.exitCode = 1;
}

function main() {
  const module = buildModule();
  const isSame = existsSync(output) && readFileSync(output, 'utf8') === module;
  if (isSame) return;
  if (process.argv.includes('--check')) {
    throw new Error(`${relative(root, output)} differs from its .lua sources. Run: node scripts/build-lua.mjs`);
  }
  writeFileSync(output, module);
}

function buildModule() {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.lua')) : [];
  const operations = names.filter((name) => !name.startsWith('_')).sort();
  if (operations.length === 0) throw new Error(`no .lua files in ${relative(root, folder)}`);
  const header = [
    '// Generated from lua/*.lua by `node scripts/build-lua.mjs`. Do not edit.',
    "import type { RedisScript } from './scripts.ts';",
  ];
  return `${[header.join('\n'), ...operations.map(constant)].join('\n\n')}\n`;
}

function constant(file) {
  const name = file.slice(0, -'.lua'.length);
  const source = minify(include(file), file);
  const sha1 = createHash('sha1').update(source).digest('hex');
  const literal = source.replaceAll(/[\\`]|\$\{/g, '\\$&');
  const identifier = name.replaceAll(/-(\w)/g, (_, letter) => letter.toUpperCase());
  return `export const ${identifier}: RedisScript = {
  name: '${name}',
  sha1: '${sha1}',
  source: \`${literal}\`,
};`;
}

function include(file) {
  return read(file).replaceAll(/^[ \t]*--@include[ \t]+(\S+)[ \t]*$/gm, (_, name) => {
    const part = read(`${name}.lua`);
    if (part.includes('--@include')) throw new Error(`${name}.lua includes a file itself: one level only`);
    return part;
  });
}

function read(file) {
  const path = join(folder, file);
  if (!existsSync(path)) throw new Error(`${relative(root, path)} does not exist`);
  return readFileSync(path, 'utf8').replaceAll('\r\n', '\n');
}

/** Drops whole-line comments, blank lines and indentation; nothing else is safe without a parser. */
function minify(source, file) {
  // Inside these a line may be text, and stripping would change it.
  const spanning = /\[=*\[|\\$/m.exec(source);
  if (spanning) throw new Error(`${file} uses a text or comment over several lines ('${spanning[0]}')`);
  const lines = source.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('--')).join('\n');
}
