import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Account, handOver } from './account.ts';

const cache = join(__dirname, '../../../node_modules/.cache/reenlock-servers');

/**
 * Fills the empty folder `dir` with what `fill` makes. `fill` runs once for this binary: all suites and later runs copy its
 * result, which takes a tenth of the time. `account` owns the result; it need not be able to read this repository.
 */
export function fillFromTemplate(
  dir: string,
  binary: string,
  account: Account | undefined,
  fill: (dir: string) => void,
): void {
  const { size, mtimeMs } = statSync(binary);
  const template = join(cache, createHash('sha1').update(`${binary} ${size} ${mtimeMs}`).digest('hex'));
  if (!existsSync(template)) makeTemplate(template, account, fill);
  copy(template, dir);
}

function makeTemplate(template: string, account: Account | undefined, fill: (dir: string) => void): void {
  const made = mkdtempSync(join(tmpdir(), 'reenlock-template-'));
  try {
    handOver(made, account);
    fill(made);
    mkdirSync(cache, { recursive: true });
    const staged = mkdtempSync(join(cache, 'staged-'));
    copy(made, staged);
    try {
      renameSync(staged, template);
    } catch (error) {
      rmSync(staged, { recursive: true });
      // Another suite was first.
      if (!existsSync(template)) throw error;
    }
  } finally {
    rmSync(made, { recursive: true });
  }
}

/** With the owners and modes, which both servers check. */
function copy(from: string, to: string): void {
  execFileSync('cp', ['-a', `${from}/.`, to]);
}
