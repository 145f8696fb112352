import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = dirname(dirname(import.meta.dirname));

/**
 * Each optimization that makes the package longer than it had to be, and how to do without it: `file` is a file of the build,
 * in which `from` is replaced by `to`. `scenario` and `row` are where it shows, and `column` is the figure.
 */
export const optimizations = [
  {
    where: 'drivers/ioredis/script-call.ts',
    buys: "a call of a script is a smaller object than the client's own",
    scenario: 'wide',
    row: 'reenlock',
    column: 'clientUs',
    file: 'stores/redis/drivers/ioredis/single-driver.js',
    from: '(0, script_call_ts_1.sendScriptCall)(this.client, command)',
    to: 'this.client.call(...command)',
  },
  {
    where: '`toWritable` in drivers/ioredis/script-call.ts',
    buys: 'the lengths of ASCII arguments are counted in one look',
    scenario: 'wide',
    row: 'reenlock',
    column: 'clientUs',
    file: 'stores/redis/drivers/ioredis/script-call.js',
    from: 'return Buffer.byteLength(text) === text.length ? text :',
    to: 'return',
  },
  {
    where: 'drivers/ioredis/write-batches.ts',
    buys: 'calls of one round are written together',
    scenario: 'wide',
    row: 'reenlock',
    column: 'clientUs',
    file: 'stores/redis/drivers/ioredis/single-driver.js',
    from: 'this.#batcher.beforeCall();',
    to: '',
  },
  {
    where: 'drivers/ioredis/cluster-driver.ts',
    buys: 'calls of one round to one server of a cluster are written together',
    scenario: 'wide',
    row: 'reenlock on a cluster',
    column: 'clientUs',
    file: 'stores/redis/drivers/ioredis/cluster-driver.js',
    from: 'this.#batcherOf(node).beforeCall();',
    to: '{}',
  },
  {
    where: 'drivers/node-redis/calls.ts',
    buys: "the client's time limit is off, for which it makes an `AbortSignal` for each call",
    scenario: 'wide',
    row: 'reenlock on node-redis',
    column: 'clientUs',
    file: 'stores/redis/drivers/node-redis/calls.js',
    from: ', timeout: undefined }',
    to: ' }',
  },
  {
    where: '`forget` in scope/scope-holds.ts',
    buys: 'the newest hold of a scope is removed without an array of what was removed',
    scenario: 're-entry',
    row: 'reenlock',
    column: 'clientUs',
    file: 'core/scope/scope-holds.js',
    from: 'if (at === this.#holds.length - 1)',
    to: 'if (false)',
  },
  {
    where: '`CallSites` in base/call-site.ts',
    buys: "of many acquires, few record the caller's line",
    scenario: 'wide',
    row: 'reenlock',
    column: 'clientUs',
    file: 'core/base/call-site.js',
    from: 'if (this.#left < 1)',
    to: 'if (false)',
  },
  {
    where: '`pooledIds` in base/clock.ts',
    buys: 'one system call makes the ids of 256 holds',
    scenario: 'run-memory',
    row: 'reenlock in memory',
    column: 'clientUs',
    file: 'core/base/clock.js',
    from: 'idBytes * 256',
    to: 'idBytes',
  },
  {
    where: '`resolveOpen` in lock/lock.ts',
    buys: 'a re-entry makes one promise',
    scenario: 're-entry',
    row: 'reenlock',
    column: 'clientUs',
    file: 'core/lock/lock.js',
    from: 'return resolved.then(() => assertOpenHold(acquired));',
    to: 'return Promise.resolve(acquired).then(assertOpenHold);',
  },
  {
    where: '`nameOf` in lock/lock.ts',
    buys: 'the key of a re-entry is not checked and encoded again',
    scenario: 're-entry',
    row: 'reenlock',
    column: 'clientUs',
    file: 'core/lock/lock.js',
    from: '?.holds.newestName(key, category) ??',
    to: '?.never ??',
  },
];

/** Copies the build to `folder` and does without an optimization there. Throws if the build has no such place. */
export function buildWithout(optimization, folder) {
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(root, 'bench', 'node_modules'), join(folder, 'node_modules'));
  const path = join(folder, 'dist', optimization.file);
  writeFileSync(path, sourceWithout(optimization, readFileSync(path, 'utf8')));
}

/** The source of its file without an optimization. */
export function sourceWithout({ where, file, from, to }, source) {
  if (source.split(from).length !== 2) throw new Error(`Expected ${file} to have \`${from}\` once, for ${where}`);
  return source.replace(from, () => to);
}
