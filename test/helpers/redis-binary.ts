import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const missing =
  'The tests need a real Redis server, and none was found. Any one of these helps: ' +
  '(1) put redis-server or valkey-server on the PATH; ' +
  '(2) set REDIS_SERVER to the path of the binary; ' +
  '(3) run the tests as root on a Debian-like system, where they install it with apt-get.';

/**
 * The path of a Redis server: `REDIS_SERVER`, else from the PATH, else installed with apt-get.
 * Throws when there is no way to get one; the tests are never skipped.
 */
export function redisBinary(): string {
  const named = process.env.REDIS_SERVER;
  if (named) {
    if (!isExecutable(named))
      throw new Error(`REDIS_SERVER is '${named}', which is not an executable file. ${missing}`);
    return named;
  }
  const binary = onPath('redis-server') ?? onPath('valkey-server') ?? install();
  if (!binary) throw new Error(missing);
  return binary;
}

function onPath(name: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function install(): string | undefined {
  if (process.getuid?.() !== 0 || !onPath('apt-get')) return undefined;
  console.log('No Redis server found: installing redis-server with apt-get.');
  withoutServices(() => {
    aptGet('update');
    aptGet('install', '-y', '--no-install-recommends', 'redis-server');
  });
  return onPath('redis-server');
}

function aptGet(...args: string[]): void {
  const { status } = spawnSync('apt-get', args, {
    stdio: 'inherit',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (status !== 0) throw new Error(`apt-get ${args[0]} failed (exit code ${status}). ${missing}`);
}

/**
 * The Debian package starts a server on the default port when it is installed. Debian's own switch against that is
 * this file: exit code 101 means "do not start". It is put there for the installation only.
 */
function withoutServices(run: () => void): void {
  const policy = '/usr/sbin/policy-rc.d';
  const isOurs = !existsSync(policy);
  if (isOurs) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    run();
  } finally {
    if (isOurs) rmSync(policy);
  }
}
