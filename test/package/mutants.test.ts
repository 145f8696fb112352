import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const script = join(__dirname, '../../scripts/mutants/mutants.mjs');
const folder = mkdtempSync(join(tmpdir(), 'reenlock-mutants-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The changes that `npm run test:mutants` would make, without the file's name. */
function changes(name: string, source: string, ...args: string[]): string[] {
  const file = join(folder, name);
  writeFileSync(file, source);
  const { stdout, stderr } = spawnSync(process.execPath, [script, '--list', ...args, file], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.replace(/^.*:(?=\d+ )/, ''));
}

describe('npm run test:mutants', () => {
  it('changes conditions, operators, literals and statements of TypeScript, also behind letters of several bytes', () => {
    const source = [
      '// “é”',
      'type Flag = true;',
      'export function f(a: number, b?: number): boolean {',
      '  if (!b || a === 1) return true;',
      '  g(a + 2);',
      '  return (b ?? 0) > 3;',
      '}',
      'declare function g(n: number): void;',
    ].join('\n');
    expect(changes('a.ts', source, '--all')).toEqual([
      '4  !b || a === 1  →  true',
      '4  !b || a === 1  →  false',
      '4  ||  →  &&',
      '4  !  →  nothing',
      '4  ===  →  !==',
      '4  true  →  false',
      '5  g(a + 2);  →  ;',
      '5  +  →  -',
      '6  >  →  >=',
      '6  ??  →  &&',
    ]);
  });

  it('changes conditions, operators, literals and statements of Lua, and neither comments nor texts', () => {
    const source = [
      '-- a == b',
      "local text = 'a == b'",
      'if not x and y > 1 then',
      "  redis.call('DEL', KEYS[1]) -- x or y",
      '  z = y + 1',
      'end',
    ].join('\n');
    expect(changes('a.lua', source, '--all')).toEqual([
      '3  >  →  >=',
      '3  and  →  or',
      '3  not  →  nothing',
      '3  not x and y > 1  →  true',
      '3  not x and y > 1  →  false',
      "4  redis.call('DEL', KEYS[1]) -- x or y  →  nothing",
      '5  +  →  -',
      '5  z = y + 1  →  nothing',
    ]);
  });
});
