// Writes src/stores/redis/scripts.generated.ts from src/stores/redis/lua/*.lua, one constant an operation.
// `--@include quick/free-key` stands for the file of that name below the folder. `--@define NAME_WITH_UNDERSCORE value` gives
// a number a name in the operation that includes it; names are replaced here, so that they cost the server nothing.
// `--@setting` does the same for a number that a store may have another value of: the module exports its names and values, and
// nothing else in an operation is that number.
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
  const settings = new Map();
  const constants = operations.map((file) => constant(file, settings));
  const lines = [...settings].map(([name, value]) => `  ${name}: ${value},`);
  const ofSettings = lines.length > 0 ? [['export const settings = {', ...lines, '} as const;'].join('\n')] : [];
  return `${[header.join('\n'), ...ofSettings, ...constants].join('\n\n')}\n`;
}

function constant(file, settings) {
  const name = file.slice(0, -'.lua'.length);
  const source = minify(define(checked(include(name), file), file, settings));
  const sha1 = createHash('sha1').update(source).digest('hex');
  const identifier = name.replaceAll(/-(\w)/g, (_, letter) => letter.toUpperCase());
  return `export const ${identifier}: RedisScript = {
  name: '${name}',
  sha1: '${sha1}',
  source: ${templateLiteral(source)},
};`;
}

/** The text of a file, with the files that it includes in their places. */
function include(name, includedBy = []) {
  if (includedBy.includes(name)) throw new Error(`${name}.lua includes itself`);
  return read(`${name}.lua`).replaceAll(/^[ \t]*--@include[ \t]+(\S+)[ \t]*$/gm, (_, part) =>
    include(part, [...includedBy, name]),
  );
}

/** Puts the values in the places of the names that were defined. Adds the settings among them to `settings`. */
function define(source, file, settings) {
  const values = new Map();
  const definitions = /^[ \t]*--@(define|setting)[ \t]+([A-Z]+(?:_[A-Z]+)+)[ \t]+(\S+)/gm;
  for (const [, kind, name, value] of source.matchAll(definitions)) {
    if (values.has(name)) throw new Error(`${file} defines ${name} twice`);
    values.set(name, value);
    if (kind === 'setting') settings.set(name, value);
  }
  const code = source.split('\n').filter((line) => !line.trim().startsWith('--'));
  for (const [name, value] of values) {
    if (!settings.has(name)) continue;
    const others = [...values].filter(([other]) => other !== name).map(([, number]) => number);
    const isElsewhere = [...code, ...others].some((text) => text.includes(value));
    if (isElsewhere) throw new Error(`${file} has the number ${value}, which is that of the setting ${name}`);
  }
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
