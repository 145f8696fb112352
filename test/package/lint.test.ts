import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from './packed.ts';

const lines = (count: number, line: string): string => Array.from({ length: count }, () => line).join('\n');
const value = (from: string): string => `import { a } from '${from}';\nexport const b: unknown = a;\n`;
const type = (from: string): string => `import type { A } from '${from}';\nexport type B = A;\n`;
const expression = (source: string): string => `export const a: unknown = ${source};\n`;

/** What no file of that name may say, and the rule that says so. */
const refused: readonly (readonly [what: string, file: string, source: string, rule: string])[] = [
  ['a framework in the core', 'src/core/a.ts', type('express'), 'noRestrictedImports'],
  ['another framework in the core', 'src/core/a1.ts', type('koa'), 'noRestrictedImports'],
  ['an adapter in the core', 'src/core/a2.ts', value('../express/index.ts'), 'noRestrictedImports'],
  ['HTTP in the core', 'src/core/a3.ts', value('./http/guard.ts'), 'noRestrictedImports'],
  ['a Redis store in the core', 'src/core/a4.ts', value('./store/redis-store.ts'), 'noRestrictedImports'],
  ['ioredis in the core', 'src/core/a5.ts', type('ioredis'), 'noRestrictedImports'],
  ['the core in a leaf', 'src/core/errors.ts', type('./locks.ts'), 'noRestrictedImports'],
  ['a framework in core/http', 'src/core/http/b.ts', type('express'), 'noRestrictedImports'],
  ['a store in core/http', 'src/core/http/b1.ts', value('../store/redis-store.ts'), 'noRestrictedImports'],
  ['the core in a store', 'src/core/store/c.ts', value('../locks.ts'), 'noRestrictedImports'],
  ['one store in another', 'src/core/store/quorum-c.ts', value('./redis-store.ts'), 'noRestrictedImports'],
  ['ioredis in another store', 'src/core/store/memory-c.ts', type('ioredis'), 'noRestrictedImports'],
  ['ioredis as a value', 'src/core/store/redis-c.ts', value('ioredis'), 'plugin'],
  ['one adapter in the other', 'src/express/d.ts', value('../koa/index.ts'), 'noRestrictedImports'],
  ['the other adapter in the one', 'src/koa/d.ts', value('../express/index.ts'), 'noRestrictedImports'],
  ['a store in an adapter', 'src/koa/d1.ts', value('../core/store/redis-store.ts'), 'noRestrictedImports'],
  ['the inside of the core in an adapter', 'src/express/d1.ts', value('../core/acquire.ts'), 'noRestrictedImports'],
  ['a cycle', 'src/core/cycle.ts', value('./cycle-of.ts'), 'noImportCycles'],
  ['the time', 'src/core/e.ts', expression('Date.now()'), 'noRestrictedGlobals'],
  ['a timer', 'src/core/http/e.ts', expression('setTimeout(() => {}, 1)'), 'noRestrictedGlobals'],
  ['randomness', 'src/core/e1.ts', expression('Math.random()'), 'noJsRestrictedProperties'],
  ['random bytes', 'src/core/e2.ts', value('node:crypto'), 'noRestrictedImports'],
  ['timers by name', 'src/core/e3.ts', value('node:timers/promises'), 'noRestrictedImports'],
  ['state of a module', 'src/core/f.ts', 'let a = 1;\nexport const b = (): number => ++a;\n', 'plugin'],
  ['old state of a module', 'src/core/f1.ts', 'var a = 1;\nexport const b = (): number => ++a;\n', 'plugin'],
  ['a barrel within', 'src/core/g.ts', `export { a } from './key.ts';\n`, 'noBarrelFile'],
  ['all of a module', 'src/core/g1.ts', `export * from './key.ts';\n`, 'noReExportAll'],
  ['a default export', 'src/core/g2.ts', 'export default 1;\n', 'noDefaultExport'],
  ['an enum', 'src/core/g3.ts', 'export enum A {\n  B,\n}\n', 'noEnum'],
  ['any', 'src/core/g4.ts', 'export const a: any = 1;\n', 'noExplicitAny'],
  ['a file in another case', 'src/core/CamelCase.ts', 'export const a = 1;\n', 'useFilenamingConvention'],
  ['a file of 251 lines', 'src/core/h.ts', `${lines(251, 'console.info(1);')}\n`, 'noExcessiveLinesPerFile'],
  [
    'a function of 61 lines',
    'src/core/h1.ts',
    `export function a(): void {\n${lines(61, '  console.info(1);')}\n}\n`,
    'noExcessiveLinesPerFunction',
  ],
];

describe('the linter', () => {
  let found: readonly { readonly file: string; readonly rule: string }[];
  beforeAll(() => {
    found = lint([...refused.map(([, file, source]) => [file, source] as const), ['src/core/cycle-of.ts', cycleOf]]);
  });

  it.each(refused)('refuses %s', (_, file, __, rule) => {
    expect(found.filter((each) => each.file === file).map((each) => each.rule)).toContain(rule);
  });
});

const cycleOf = `import { b } from './cycle.ts';\nexport const a: unknown = b;\n`;

/** What the linter of this repository says of such files. */
function lint(files: readonly (readonly [file: string, source: string])[]): { file: string; rule: string }[] {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'reenlock-lint-')));
  try {
    for (const each of ['biome.json', 'biome.layers.json', '.gitignore', 'scripts/lint']) {
      cpSync(join(root, each), join(folder, each), { recursive: true });
    }
    for (const [file, source] of files) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), source);
    }
    const biome = join(root, 'node_modules/.bin/biome');
    const args = ['lint', '--reporter=json', '--max-diagnostics=none', '.'];
    const { stdout, stderr } = spawnSync(biome, args, { cwd: folder, encoding: 'utf8' });
    const json = stdout.split('\n').find((line) => line.startsWith('{'));
    if (json === undefined) throw new Error(`biome said: ${stdout}${stderr}`);
    const { diagnostics } = JSON.parse(json) as { diagnostics: { category: string; location: { path: unknown } }[] };
    return diagnostics.map(({ category, location }) => ({
      file: pathOf(location.path),
      rule: category.split('/').at(-1) as string,
    }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function pathOf(path: unknown): string {
  return typeof path === 'string' ? path : (path as { file: string }).file;
}
