// Writes src/stores/redis/scripts.generated.ts from src/stores/redis/lua/*.lua, one constant an operation.
// `--@include parts/holds` stands for the file of that name below the folder, up to its first `--@section`; with the name of a
// section behind it, for the lines of that one. `--@define NAME_WITH_UNDERSCORE value` gives a value without spaces a name in the
// operation that includes it; names are replaced here, so that they cost the server nothing.
// With --check nothing is written.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { generate, root, templateLiteral } from './lib/generated.mjs';

const folder = join(root, 'src/stores/redis/lua');
const output = join(root, 'src/stores/redis/scripts.generated.ts');

generate({ script: import.meta.filename, output, sources: '.lua sources', build: buildModule });

function buildModule() {
  const operations = (existsSync(folder) ? readdirSync(folder) : []).filter((name) => name.endsWith('.lua')).sort();
  if (operations.length === 0) throw new Error(`no .lua files in ${relative(root, folder)}`);
  const header = [
    '// Generated from lua/*.lua by `node scripts/build-lua.mjs`. Do not edit.',
    "import type { RedisScript } from './scripts.ts';",
  ];
  return `${[header.join('\n'), ...operations.map(constant)].join('\n\n')}\n`;
}

function constant(file) {
  const name = file.slice(0, -'.lua'.length);
  const source = minify(define(checked(include(name), file), file));
  const sha1 = createHash('sha1').update(source).digest('hex');
  const identifier = name.replaceAll(/-(\w)/g, (_, letter) => letter.toUpperCase());
  return `export const ${identifier}: RedisScript = {
  name: '${name}',
  sha1: '${sha1}',
  source: ${templateLiteral(source)},
};`;
}

/** The text of a file, or of a section of it, with what it includes in its places. */
function include(name, section = '', includedBy = []) {
  const id = `${name} ${section}`.trimEnd();
  if (includedBy.includes(id)) throw new Error(`${name}.lua includes itself`);
  const [, ...parts] = `--@section\n${read(`${name}.lua`)}`.split(/^--@section\b/m);
  const text = parts.find((part) => part.slice(0, part.indexOf('\n')).trim() === section);
  if (text === undefined) throw new Error(`${name}.lua has no section ${section}`);
  return text
    .slice(text.indexOf('\n') + 1)
    .replaceAll(/^[ \t]*--@include[ \t]+(\S+)(?:[ \t]+(\S+))?[ \t]*$/gm, (_, ...words) =>
      include(words[0], words[1], [...includedBy, id]),
    );
}

/** Puts the values in the places of the names that were defined. */
function define(source, file) {
  const values = new Map();
  for (const [, name, value] of source.matchAll(/^[ \t]*--@define[ \t]+([A-Z]+(?:_[A-Z]+)+)[ \t]+(\S+)/gm)) {
    if (values.has(name)) throw new Error(`${file} defines ${name} twice`);
    values.set(name, value);
  }
  const code = source.split('\n').filter((line) => !line.trim().startsWith('--'));
  return code.join('\n').replaceAll(/\b[A-Z]+(?:_[A-Z]+)+\b/g, (name) => {
    if (!values.has(name)) throw new Error(`${file} does not define ${name}`);
    return values.get(name);
  });
}

function read(file) {
  const path = join(folder, file);
  if (!existsSync(path)) throw new Error(`${relative(root, path)} does not exist`);
  return readFileSync(path, 'utf8').replaceAll('\r\n', '\n');
}

/** Refuses a text or a comment over several lines: a line of it may look like a comment, or need its indentation. */
function checked(source, file) {
  const spanning = /\[=*\[|\\$/m.exec(source);
  if (spanning) throw new Error(`${file} uses a text or comment over several lines ('${spanning[0]}')`);
  return source;
}

/** Drops blank lines and indentation, after the whole-line comments; nothing else is safe without a parser. */
function minify(source) {
  const lines = source.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join('\n');
}
