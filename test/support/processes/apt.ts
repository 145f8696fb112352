import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Installs a Debian package with apt-get, where this is root's process and there is one; does nothing elsewhere. Throws
 * where that fails, with the `advice`.
 */
export function aptInstall(name: string, advice: string): void {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return;
  console.log(`Not found: installing ${name} with apt-get.`);
  withoutServices(() => {
    aptGet(advice, 'update');
    aptGet(advice, 'install', '-y', '--no-install-recommends', name);
  });
}

function aptGet(advice: string, ...args: string[]): void {
  const { status } = spawnSync('apt-get', args, {
    stdio: 'inherit',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (status !== 0) throw new Error(`apt-get ${args[0]} failed (exit code ${status}). ${advice}`);
}

/**
 * A Debian package starts its server when it is installed. Debian's own switch against that is this file: exit code 101
 * means "do not start". It is put there for the installation only.
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
