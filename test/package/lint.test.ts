import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from './packed.ts';

const lines = (count: number, line: string): string => Array.from({ length: count }, () => line).join('\n');
const value = (from: string): string => `import { a } from '${from}';\nexport const b: unknown = a;\n`;
const expression = (source: string): string => `export const a: unknown = ${source};\n`;

/** What no file of that name may say, and the rule that says so. */
const refused: readonly (readonly [what: string, file: string, source: string, rule: string])[] = [
  ['ioredis as a value', 'src/stores/redis/drivers/c.ts', value('ioredis'), 'plugin'],
  ['node-redis as a value', 'src/stores/redis/drivers/d.ts', value('@redis/client'), 'plugin'],
  ['the time', 'src/core/e.ts', expression('Date.now()'), 'noRestrictedGlobals'],
  ['a timer', 'src/http/e.ts', expression('setTimeout(() => {}, 1)'), 'noRestrictedGlobals'],
  ['randomness', 'src/core/e1.ts', expression('Math.random()'), 'noJsRestrictedProperties'],
  ['random bytes', 'src/core/e2.ts', value('node:crypto'), 'noRestrictedImports'],
  ['timers by name', 'src/core/e3.ts', value('node:timers/promises'), 'noRestrictedImports'],
  ['state of a module', 'src/core/f.ts', 'let a = 1;\nexport const b = (): number => ++a;\n', 'plugin'],
  ['old state of a module', 'src/core/f1.ts', 'var a = 1;\nexport const b = (): number => ++a;\n', 'plugin'],
  ['a barrel within', 'src/core/g.ts', `export { a } from './model/key.ts';\n`, 'noBarrelFile'],
  ['all of a module', 'src/core/g1.ts', `export * from './model/key.ts';\n`, 'noReExportAll'],
  ['a default export', 'src/core/g2.ts', 'export default 1;\n', 'noDefaultExport'],
  ['an enum', 'src/core/g3.ts', 'export enum A {\n  B,\n}\n', 'noEnum'],
  ['any', 'src/core/g4.ts', 'export const a: any = 1;\n', 'noExplicitAny'],
  ['a file in another case', 'src/core/CamelCase.ts', 'export const a = 1;\n', 'useFilenamingConvention'],
  ['a file of 301 lines', 'src/core/h.ts', `${lines(301, 'console.info(1);')}\n`, 'noExcessiveLinesPerFile'],
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
    found = lint(refused.map(([, file, source]) => [file, source] as const));
  });

  it.each(refused)('The linter refuses %s', (_, file, __, rule) => {
    expect(found.filter((each) => each.file === file).map((each) => each.rule)).toContain(rule);
  });
});

/** What the linter of this repository says of such files. */
function lint(files: readonly (readonly [file: string, source: string])[]): { file: string; rule: string }[] {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'reenlock-lint-')));
  try {
    for (const each of ['biome.json', 'biome.clock.json', '.gitignore', 'scripts/lint']) {
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
