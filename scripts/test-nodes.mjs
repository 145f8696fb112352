// Runs the suites that depend on Node's HTTP and timers under several versions of Node, one after the other:
//   npm run test:nodes                 all versions, test/http test/core test/stores
//   npm run test:nodes -- 24 26.1.0    these versions
//   npm run test:nodes -- 24 test/http/abort/abort.test.ts
// Versions are installed from the npm registry into node_modules/.cache; the one that runs this is used as it is.
// Exit code 1 says that a suite failed or that a version could not be had.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const versions = ['20', '22', '24', '26'];
const suites = ['test/http', 'test/core', 'test/stores'];
const versionPattern = /^\d+(\.\d+){0,2}$/;

try {
  main(process.argv.slice(2));
} catch (error) {
  console.error(`test-nodes: ${error.message}`);
  process.exitCode = 1;
}

function main(args) {
  const asked = args.filter((arg) => versionPattern.test(arg));
  const paths = args.filter((arg) => !versionPattern.test(arg));
  const results = (asked.length > 0 ? asked : versions).map((version) =>
    run(version, paths.length > 0 ? paths : suites),
  );
  console.log(['', ...results.map(({ line }) => line)].join('\n'));
  if (results.some(({ hasPassed }) => !hasPassed)) process.exitCode = 1;
}

function run(asked, paths) {
  try {
    const node = isOwn(asked) ? process.execPath : install(asked);
    const version = versionOf(node, asked);
    console.log(`\n${version}: ${paths.join(' ')}`);
    const outcome = test(node, paths);
    return { hasPassed: outcome === 'passed', line: `Node ${asked} (${version}): ${outcome}` };
  } catch (error) {
    return { hasPassed: false, line: `Node ${asked}: not tested: ${error.message}` };
  }
}

/** Whether a version, or the beginning of one, is that of the running process. */
function isOwn(asked) {
  return `${process.versions.node}.`.startsWith(`${asked}.`);
}

/** The path of that version's binary, which its npm package brings along. */
function install(asked) {
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const name = `node-${platform}-${process.arch}`;
  const folder = join(root, 'node_modules/.cache/nodes', asked);
  mkdirSync(folder, { recursive: true });
  const flags = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  const npm = spawnSync('npm', ['install', '--prefix', folder, ...flags, `${name}@${asked}`], {
    encoding: 'utf8',
    // On Windows npm is a script.
    shell: process.platform === 'win32',
  });
  if (npm.error) throw npm.error;
  if (npm.status !== 0) {
    throw new Error(`npm can't install ${name}@${asked}: ${npm.stderr.replaceAll(/\s*(npm error)?\s+/g, ' ').trim()}`);
  }
  return join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
}

/** Asks the binary itself: another version's results would be worse than none. */
function versionOf(node, asked) {
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
  if (!`${version}.`.startsWith(`v${asked}.`)) throw new Error(`${node} is ${version}`);
  return version;
}

function test(node, paths) {
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  const { status, signal, error } = spawnSync(node, [jest, ...paths], { cwd: root, stdio: 'inherit' });
  if (error) throw error;
  if (signal !== null) return `ended by ${signal}`;
  return status === 0 ? 'passed' : `failed (exit code ${status})`;
}
