// Changes the sources one place at a time, and lists the changes that no test notices:
//   npm run test:mutants                          a sample of 40, from all of src; the seed is printed
//   npm run test:mutants -- --seed 7 --count 100  the same sample again, and a larger one
//   npm run test:mutants -- src/http/guard.ts src/stores/redis/lua/release.lua --all
// --all takes every change of the files that are named; --list prints the changes and tests nothing; --tests takes the
// paths after it, up to the next option, in place of the tests of the changed file's room; --json writes the results.
// The tests run in a copy of the working tree, first without a change: they must pass, or the rest would say nothing. Exit
// code 1 says that a change survived.

import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { mutationsOfLua } from './lua.mjs';
import { mutationsOfTypeScript } from './typescript.mjs';

const root = join(import.meta.dirname, '../..');
const hangMs = 300_000;

/** By where a source stands, the tests that must notice: first those of its own room, then those that use it. */
const rooms = [
  [/^src[/]stores[/]redis[/]lua[/]/, [['test/stores/redis/redis-store.contract'], ['test/stores/redis']]],
  [/^src[/]stores[/](redis|quorum|cas|postgres|mysql)[/]/, ({ 1: room }) => [[`test/stores/${room}`], ['test/core']]],
  [/^src[/]stores[/]pool[/]/, [['test/stores/mysql', 'test/stores/postgres']]],
  [
    /^src[/]core[/](machine|memory)[/]/,
    [
      ['test/core/memory', 'test/stores/cas/cas-store'],
      ['test/core', 'test/stores/differential'],
    ],
  ],
  [/^src[/](prometheus|testing)[/]/, ({ 1: room }) => [[`test/${room}`]]],
  [/^src[/]board[/]/, [['test/board/page', 'test/board/feed'], ['test/board']]],
  [
    /^src[/](http|node|express|koa|fastify|hono|nest)[/]/,
    [['test/http', 'test/express', 'test/koa', 'test/fastify', 'test/hono', 'test/nest']],
  ],
  [/^src[/]core[/](\w+)[/]/, ({ 1: room }) => [[`test/core/${room}`], ['test/core'], ['test/http']]],
];

await main();

async function main() {
  const { values, positionals, tests } = withTests({
    allowPositionals: true,
    tokens: true,
    options: {
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      count: { type: 'string', default: '40' },
      all: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      tests: { type: 'string', multiple: true },
      json: { type: 'string' },
    },
  });
  const files = positionals.length > 0 ? positionals.map((file) => relative(root, resolve(file))) : sources();
  const every = files.flatMap(mutationsOf);
  const chosen = values.all ? every : sample(every, Number(values.count), Number(values.seed));
  console.log(`${chosen.length} of ${every.length} changes, --seed ${values.seed}`);
  if (values.list) {
    for (const mutation of chosen) console.log(nameOf(mutation));
    return;
  }
  const results = await testAll(chosen, tests);
  const survivors = results.filter(({ outcome }) => outcome === 'survived');
  console.log(['', `${survivors.length} of ${results.length} changes survived`, ...survivors.map(nameOf)].join('\n'));
  if (values.json) writeFileSync(values.json, JSON.stringify(results, null, 2));
  if (survivors.length > 0) process.exitCode = 1;
}

/** The arguments. The paths after `--tests`, up to the next option, are tests and no sources. */
function withTests(config) {
  const { values, tokens } = parseArgs(config);
  const positionals = [];
  const tests = [];
  let paths = positionals;
  for (const { kind, name, value } of tokens) {
    if (kind === 'option') paths = name === 'tests' ? tests : positionals;
    if (kind === 'positional' || name === 'tests') paths.push(value);
  }
  return { values, positionals, tests: tests.length > 0 ? tests : undefined };
}

function sources() {
  const { stdout } = spawnSync('git', ['ls-files', 'src'], { cwd: root, encoding: 'utf8' });
  return stdout.split('\n').filter((file) => /\.(ts|lua)$/.test(file) && !file.endsWith('.generated.ts'));
}

/** Changes are replacements of text: `{ file, line, from, to, text, becomes }`, in offsets of the source. */
function mutationsOf(file) {
  const source = readFileSync(join(root, file), 'utf8');
  const found = file.endsWith('.lua') ? mutationsOfLua(source) : mutationsOfTypeScript(source);
  return found.map(({ from, to, becomes }) => ({
    file,
    line: source.slice(0, from).split('\n').length,
    from,
    to,
    text: source.slice(from, to),
    becomes,
  }));
}

/** The same choice for the same seed, in the order of the sources (mulberry32). */
function sample(items, count, seed) {
  let state = seed | 0;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const drawn = items.map((item, place) => ({ item, place, at: random() }));
  const chosen = drawn.sort((a, b) => a.at - b.at).slice(0, count);
  return chosen.sort((a, b) => a.place - b.place).map(({ item }) => item);
}

async function testAll(mutations, tests) {
  const tree = mkdtempSync(join(tmpdir(), 'reenlock-mutants-'));
  try {
    const { stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
    for (const file of stdout.split('\n').filter(Boolean)) cpSync(join(root, file), join(tree, file), { force: true });
    symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
    await assertGreen(tree, mutations, tests);
    const results = [];
    for (const mutation of mutations) {
      const outcome = await test(tree, mutation, tests);
      console.log(`${String(results.length + 1).padStart(4)} ${outcome.padEnd(9)} ${nameOf(mutation)}`);
      results.push({ ...mutation, outcome });
    }
    return results;
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

/** Runs once, without a change, all tests that the changes are tried with. */
async function assertGreen(tree, mutations, tests) {
  const paths = new Set(mutations.flatMap(({ file }) => tests ?? roomOf(file).flat()));
  if ((await jest(tree, [...paths], { stdio: 'inherit', limitMs: 3_600_000 })) !== 'survived') {
    throw new Error('The tests fail without a change, or there are none: make them pass, or name others with --tests');
  }
}

async function test(tree, { file, from, to, becomes }, tests) {
  const path = join(tree, file);
  const source = readFileSync(path, 'utf8');
  const write = (text) => {
    writeFileSync(path, text);
    if (file.endsWith('.lua')) spawnSync(process.execPath, [join(tree, 'scripts/build-lua.mjs')], { stdio: 'inherit' });
  };
  write(source.slice(0, from) + becomes + source.slice(to));
  try {
    for (const paths of tests === undefined ? roomOf(file) : [tests]) {
      // A room may have no tests of its own.
      const outcome = await jest(tree, [...paths, '--passWithNoTests']);
      if (outcome !== 'survived') return outcome;
    }
    return 'survived';
  } finally {
    write(source);
  }
}

function roomOf(file) {
  for (const [pattern, paths] of rooms) {
    const match = pattern.exec(file);
    if (match !== null) return typeof paths === 'function' ? paths(match) : paths;
  }
  return [['test/core', 'test/http']];
}

/** Runs tests until one fails. */
function jest(tree, args, { stdio = 'ignore', limitMs = hangMs } = {}) {
  const command = ['node_modules/.bin/jest', ...args, '--bail', '-w', String(availableParallelism())];
  const child = spawn(process.execPath, command, { cwd: tree, stdio, detached: true });
  return new Promise((resolve) => {
    // The workers with it: one that is in a loop hears nothing.
    const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), limitMs);
    child.once('exit', (code) => {
      clearTimeout(timer);
      if (code === null) resolve('hung');
      else resolve(code === 0 ? 'survived' : 'killed');
    });
  });
}

function nameOf({ file, line, text, becomes }) {
  const short = (code) => JSON.stringify(code.length > 60 ? `${code.slice(0, 57)}…` : code).slice(1, -1) || 'nothing';
  return `${file}:${line}  ${short(text.trim())}  →  ${short(becomes.trim())}`;
}
