import { spawnSync } from 'node:child_process';
import { chownSync } from 'node:fs';

/** A user of this machine. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Servers of databases refuse to run as root: then they run as the `user` that their package made. */
export function unprivileged(user: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(spawnSync('id', [flag, user], { encoding: 'utf8' }).stdout));
  if (!uid || !gid) throw new Error(`Run as root, the tests need the user \`${user}\` for a server to run as`);
  return { uid, gid };
}

export function handOver(path: string, account: Account | undefined): void {
  if (account !== undefined) chownSync(path, account.uid, account.gid);
}
