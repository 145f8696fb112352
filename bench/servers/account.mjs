import { execFileSync } from 'node:child_process';

/** The databases refuse to run as root; then they run as the user that their package made. */
export function unprivileged(user) {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, user])));
  return { uid, gid };
}
