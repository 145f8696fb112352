import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { matrix } from '../../support/matrix.ts';
import { packPackage, root } from '../packed.ts';

const compilers = {
  '5.4': 'test/package/types/typescript5/node_modules/typescript',
  '6': 'test/package/types/typescript6/node_modules/typescript',
  '7': 'node_modules/typescript',
} as const;
const nodeTypes = { 20: '@types/node', 24: 'types-node24', 26: 'types-node26' } as const;
type Pair = readonly [typescript: keyof typeof compilers, node: keyof typeof nodeTypes];

let unpacked: string;
let folder: string;
beforeAll(() => {
  unpacked = packPackage().unpacked;
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'reenlock-types-'));
  mkdirSync(join(folder, 'node_modules/@types'), { recursive: true });
  link(unpacked, 'reenlock');
});
afterEach(() => rmSync(folder, { recursive: true }));

function link(path: string, name: string): void {
  symlinkSync(path, join(folder, 'node_modules', name));
}

/** Gives the application all packages that this repository has, with other types of Node. */
function linkAll(typesOfNode: string): void {
  const own = ['.bin', '.cache', '@types', 'reenlock'];
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (!own.includes(name)) link(join(root, 'node_modules', name), name);
  }
  for (const name of readdirSync(join(root, 'node_modules/@types'))) {
    const target = name === 'node' ? typesOfNode : `@types/${name}`;
    link(join(root, 'node_modules', target), `@types/${name}`);
  }
}

/** What TypeScript says about the types of these subpaths without `skipLibCheck`. */
function errorsOf(typescript: keyof typeof compilers, subpaths: readonly string[]): string[] {
  const imports = subpaths.map((path, n) => `import type * as m${n} from 'reenlock${path.slice(1)}';`);
  const all = subpaths.map((_, n) => `typeof m${n}`).join(' | ');
  writeFileSync(join(folder, 'main.mts'), `${imports.join('\n')}\nexport type All = ${all};\n`);
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    strict: true,
    skipLibCheck: false,
    preserveSymlinks: true,
    noEmit: true,
    types: ['node'],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.mts'] }));
  const tsc = join(root, compilers[typescript], 'bin/tsc');
  const { stdout } = spawnSync('node', [tsc, '-p', '.', '--listFiles'], { cwd: folder, encoding: 'utf8' });
  expect(stdout).toContain('node_modules/reenlock/dist/core/lock/acquire-channel.d.ts');
  // The types of other packages may have errors of their own.
  return stdout.split('\n').filter((line) => /^(node_modules\/reenlock\/|main\.mts|error)/.test(line));
}

it.each(
  matrix<Pair>([['7', 26]], () => [
    ...([20, 24] as const).map((node) => ['7', node] as const),
    ...([20, 24, 26] as const).flatMap((node) => [['6', node] as const, ['5.4', node] as const]),
  ]),
)('TypeScript %s with @types/node %d finds no error in the types of the package', (typescript, node) => {
  linkAll(nodeTypes[node]);
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: object };
  // TypeScript before 5.8 can't require Nest 12, which has modules alone.
  const left = ['./package.json', ...(typescript === '5.4' ? ['./nest'] : [])];
  const subpaths = Object.keys(exports).filter((path) => !left.includes(path));
  expect(errorsOf(typescript, subpaths)).toEqual([]);
});

it('The types of the core, of the stores and of the test kit need the types of no optional peer', () => {
  link(join(root, 'node_modules/types-node26'), '@types/node');
  link(join(root, 'node_modules/cls-rtracer'), 'cls-rtracer');
  const subpaths = ['.', './redis', './postgres', './mysql', './node', './testing', './testing/contract'];
  expect(errorsOf('7', subpaths)).toEqual([]);
});
