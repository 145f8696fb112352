import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export const root: string = join(__dirname, '../..');

/** What would be published, built from the sources as they are. */
export interface Packed {
  readonly tarball: string;
  /** The paths within the package. */
  readonly files: readonly string[];
  /** The package, unpacked. What it imports is found in this repository. */
  readonly unpacked: string;
}

export const cache: string = join(root, 'node_modules/.cache/reenlock-packed');
const documents = ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'docs'];
const sources = [...documents, 'src', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'];

/**
 * Builds and packs the package, once for the same sources: suites share the result, side by side and from run to run.
 * `dist` is left alone.
 */
export function packPackage(): Packed {
  const folder = join(cache, hashOf(sources));
  if (!existsSync(folder)) {
    mkdirSync(cache, { recursive: true });
    const staged = mkdtempSync(join(cache, 'staged-'));
    try {
      for (const file of sources) cpSync(join(root, file), join(staged, file), { recursive: true });
      pack(staged);
      forgetOthers();
      renameSync(staged, folder);
    } catch (error) {
      rmSync(staged, { recursive: true });
      // Another suite was first.
      if (!existsSync(folder)) throw error;
    }
  }
  const files = JSON.parse(readFileSync(join(folder, 'files.json'), 'utf8')) as string[];
  return { tarball: join(folder, 'package.tgz'), files, unpacked: join(folder, 'node_modules/reenlock') };
}

const peers = [
  ...['express', 'koa', '@koa/router', 'fastify', 'hono', '@hono', '@nestjs', 'rxjs', 'reflect-metadata'],
  ...['ioredis', 'iovalkey', 'redis', 'pg', 'mysql2', 'cls-rtracer', '@types'],
];

/** A new folder where `reenlock` and its peers can be imported, and nothing else. `others` are other versions, and other packages. */
export function createConsumer(
  { unpacked }: Packed,
  others: Readonly<Record<string, string>> = {},
): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'reenlock-consumer-'));
  cpSync(unpacked, join(folder, 'node_modules/reenlock'), { recursive: true });
  for (const peer of new Set([...peers, ...Object.keys(others)])) {
    const link = join(folder, 'node_modules', peer);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, others[peer] ?? join('node_modules', peer)), link);
  }
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
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

function pack(folder: string): void {
  // Beside its sources, to which the maps lead.
  runBinary('tsc', ['-p', join(folder, 'tsconfig.build.json')]);
  const output = execFileSync('npm', ['pack', '--ignore-scripts', '--json'], { cwd: folder, encoding: 'utf8' });
  const [{ filename, files }] = JSON.parse(output) as [{ filename: string; files: { path: string }[] }];
  renameSync(join(folder, filename), join(folder, 'package.tgz'));
  writeFileSync(join(folder, 'files.json'), JSON.stringify(files.map(({ path }) => path)));
  const target = join(folder, 'node_modules/reenlock');
  mkdirSync(target, { recursive: true });
  execFileSync('tar', ['-xzf', join(folder, 'package.tgz'), '-C', target, '--strip-components=1']);
}

function hashOf(paths: readonly string[]): string {
  const hash = createHash('sha1');
  const add = (path: string): void => {
    if (statSync(join(root, path)).isDirectory())
      for (const name of readdirSync(join(root, path))) add(join(path, name));
    else hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  };
  for (const path of paths) add(path);
  return hash.digest('hex');
}

const anHourMs = 3_600_000;

/** Removes what older sources gave, but for what a run that goes on may use. */
function forgetOthers(): void {
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    if (Date.now() - statSync(path).mtimeMs > anHourMs) rmSync(path, { recursive: true, force: true });
  }
}
