import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { aptInstall } from './apt.ts';

/** The path of a program on the PATH, or in one of `more` folders; undefined if there is none of that name. */
export function onPath(name: string, more: readonly string[] = []): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...more];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/**
 * The path of a program: from the PATH or one of `more` folders, else from this Debian package, installed with apt-get. Throws
 * the `advice` if there is no way to get it: tests are never skipped.
 */
export function programOf(debianPackage: string, name: string, advice: string, more?: readonly string[]): string {
  const known = onPath(name, more);
  if (known !== undefined) return known;
  aptInstall(debianPackage, advice);
  const installed = onPath(name, more);
  if (installed === undefined) throw new Error(advice);
  return installed;
}

/** Whether a path is that of a file that can be run. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
