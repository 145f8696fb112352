import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = dirname(dirname(import.meta.dirname));
const scripts = 'stores/redis/scripts.generated.js';

/**
 * Each optimization that makes the package longer than it had to be, and how to do without it: `file` is a file of the build,
 * in which `from` is replaced by `to`. `scenario` and `row` are where it shows, and `column` is the figure.
 */
export const optimizations = [
  {
    where: 'lua/quick/grant-free-key.lua',
    buys: 'a free key is granted before the rest of the script is defined',
    scenario: 'wide',
    row: 'reenlock',
    column: 'serverUs',
    file: scripts,
    from: 'if isFree and not',
    to: 'if false and isFree and not',
  },
  {
    where: 'lua/quick/release-only-hold.lua',
    buys: 'the only hold is released before the rest of the script is defined',
    scenario: 'wide',
    row: 'reenlock',
    column: 'serverUs',
    file: scripts,
    from: 'local isOnly = text and',
    to: 'local isOnly = false and',
  },
  {
    where: 'lua/quick/hand-to-first-waiter.lua',
    buys: 'a release hands the key to the first waiter without a look at the others',
    scenario: 'hot-key',
    row: 'reenlock',
    column: 'serverUs',
    file: scripts,
    from: 'elseif isQuick and',
    to: 'elseif false and',
  },
  {
    where: 'lua/quick/queue-behind-writer.lua',
    buys: 'a waiter is queued before the rest of the script is defined',
    scenario: 'hot-key',
    row: 'reenlock',
    column: 'serverUs',
    file: scripts,
    from: 'if isWritten and',
    to: 'if false and isWritten and',
  },
  {
    where: 'lua/quick/read-beside-readers.lua',
    buys: 'a reader joins others before the rest of the script is defined',
    scenario: 'read',
    row: 'reenlock, to read',
    column: 'serverUs',
    file: scripts,
    from: 'if lineFeed and string.byte(ARGV[2])',
    to: 'if false and string.byte(ARGV[2])',
  },
  {
    where: 'lua/quick/release-reader.lua',
    buys: 'a reader leaves others before the rest of the script is defined',
    scenario: 'read',
    row: 'reenlock, to read',
    column: 'serverUs',
    file: scripts,
    from: "if text and flag ~= '2' and",
    to: "if false and text and flag ~= '2' and",
  },
  {
    where: '`?` in lua/parts/layout.lua',
    buys: 'the record names the only waiter, so that its turn needs no look at the queue',
    scenario: 'hand-off',
    row: 'reenlock',
    column: 'serverUs',
    file: scripts,
    from: "local alone = string.byte(wants) == 119 and '",
    to: "local alone = false and '",
  },
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
    where: 'drivers/ioredis/write-batches.ts',
    buys: 'calls of one turn are written together',
    scenario: 'wide',
    row: 'reenlock',
    column: 'clientUs',
    file: 'stores/redis/drivers/ioredis/single-driver.js',
    from: 'this.#batcher.beforeCall();',
    to: '',
  },
  {
    where: 'drivers/ioredis/cluster-driver.ts',
    buys: 'calls of one turn to one server of a cluster are written together',
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
    where: '`forget` in scope/scope.ts',
    buys: 'the newest hold of a scope is removed without an array of what was removed',
    scenario: 're-entry',
    row: 'reenlock',
    column: 'clientUs',
    file: 'core/scope/scope.js',
    from: 'if (at === this.#holds.length - 1)',
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
    from: '?.newestName(key, category) ??',
    to: '?.never ??',
  },
  {
    where: '`acquire_free` in postgres/sql/quick.ts',
    buys: 'a free key is granted in three statements',
    scenario: 'one-at-a-time',
    row: 'reenlock on PostgreSQL',
    column: 'serverUs',
    file: 'stores/postgres/sql/operations.js',
    from: 'WHEN l.holds = 0 AND op',
    to: 'WHEN false AND op',
  },
  {
    where: '`release_last` in postgres/sql/quick.ts',
    buys: 'the only hold is released in three statements',
    scenario: 'one-at-a-time',
    row: 'reenlock on PostgreSQL',
    column: 'serverUs',
    file: 'stores/postgres/sql/operations.js',
    from: 'WHEN l.holds = 1 AND op',
    to: 'WHEN false AND op',
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
  const changed = source.replace(from, () => to);
  return file === scripts ? changed + withTheirDigests : changed;
}

const withTheirDigests = `
for (const script of Object.values(exports).filter(({ source }) => source !== undefined)) {
  script.sha1 = require('node:crypto').createHash('sha1').update(script.source).digest('hex');
}
`;
