import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export const root: string = join(__dirname, '../..');

/** What would be published, built from the sources as they are. */
export interface Packed {
  readonly tarball: string;
  /** The paths within the package. */
  readonly files: readonly string[];
  /** A folder where `reenlock` and its peers can be imported. */
  readonly consumer: string;
  remove(): void;
}

/**
 * Builds and packs in a temporary folder, and installs the result beside the peers of this repository. `dist` is left
 * alone, so that suites may do it side by side.
 */
export function packPackage(): Packed {
  const temporary = mkdtempSync(join(tmpdir(), 'reenlock-package-'));
  const remove = () => rmSync(temporary, { recursive: true });
  try {
    const { tarball, files } = pack(join(temporary, 'staged'));
    return { tarball, files, consumer: install(tarball, join(temporary, 'consumer')), remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Runs a development tool of this repository; throws with its output when it fails. */
export function runBinary(name: string, args: readonly string[], cwd: string = root): string {
  try {
    return execFileSync(join(root, 'node_modules/.bin', name), args, { cwd, encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${name} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error });
  }
}

function pack(folder: string): Pick<Packed, 'tarball' | 'files'> {
  mkdirSync(folder);
  for (const file of ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'docs']) {
    cpSync(join(root, file), join(folder, file), { recursive: true });
  }
  runBinary('tsc', ['-p', 'tsconfig.build.json', '--outDir', join(folder, 'dist')]);
  const output = execFileSync('npm', ['pack', '--ignore-scripts', '--json'], { cwd: folder, encoding: 'utf8' });
  const [{ filename, files }] = JSON.parse(output) as [{ filename: string; files: { path: string }[] }];
  return { tarball: join(folder, filename), files: files.map(({ path }) => path) };
}

function install(tarball: string, folder: string): string {
  const target = join(folder, 'node_modules/reenlock');
  mkdirSync(target, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '-C', target, '--strip-components=1']);
  for (const peer of ['express', 'koa', '@koa/router', 'ioredis', 'cls-rtracer', '@types']) {
    const link = join(folder, 'node_modules', peer);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, 'node_modules', peer), link);
  }
  return folder;
}
