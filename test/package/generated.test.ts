import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const root = join(__dirname, '../..');
const board = 'src/board';
const generated = 'src/stores/redis/scripts.generated.ts';

function buildLua(folder: string, ...args: string[]): { code: number | null; stderr: string } {
  const { status, stderr } = spawnSync('node', [join(folder, 'scripts/build-lua.mjs'), ...args], { encoding: 'utf8' });
  return { code: status, stderr };
}

it('The committed Redis scripts are what their .lua sources give', () => {
  expect(buildLua(root, '--check')).toEqual({ code: 0, stderr: '' });
});

it("The committed module of the board's page is what the files of the page give, and their drift is reported", () => {
  const build = (folder: string) =>
    spawnSync('node', [join(folder, 'scripts/build-page.mjs'), '--check'], { encoding: 'utf8' });
  expect(build(root)).toMatchObject({ status: 0, stderr: '' });
  const copy = mkdtempSync(join(tmpdir(), 'reenlock-page-'));
  for (const folder of ['scripts', board]) cpSync(join(root, folder), join(copy, folder), { recursive: true });
  expect(build(copy).status).toBe(0);
  appendFileSync(join(copy, board, 'page/main.mjs'), '// Changed.\n');
  expect(build(copy)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining(
      'page.generated.ts differs from its files in page. Run: node scripts/build-page.mjs',
    ),
  });
  rmSync(copy, { recursive: true });
});

describe('build-lua', () => {
  let folder: string;
  const write = (name: string, source: string) => {
    const path = join(folder, 'src/stores/redis/lua', name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, source);
  };
  const read = () => readFileSync(join(folder, generated), 'utf8');

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'reenlock-lua-'));
    mkdirSync(join(folder, 'src/stores/redis/lua'), { recursive: true });
    cpSync(join(root, 'scripts'), join(folder, 'scripts'), { recursive: true });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('build-lua includes shared parts, strips whole-line comments only, and names the hash of what is sent', () => {
    write('parts/all.lua', '  --@include parts/now\n');
    write('parts/now.lua', '-- shared\nlocal function now()\n  return 1\nend\n');
    write('force-release.lua', '-- header\n--@include parts/all\n\n  return "-- `kept` ${x} \\n" -- kept\n');
    expect(buildLua(folder)).toEqual({ code: 0, stderr: '' });
    const source = 'local function now()\nreturn 1\nend\nreturn "-- `kept` ${x} \\n" -- kept';
    const sha1 = createHash('sha1').update(source).digest('hex');
    const [, literal] = /export const forceRelease: RedisScript = [^`]*(`.*`)/s.exec(read()) as unknown as [
      string,
      string,
    ];
    expect(new Function(`return ${literal}`)()).toBe(source);
    expect(read()).toContain(`sha1: '${sha1}'`);
    expect(buildLua(folder, '--check').code).toBe(0);
  });

  it('build-lua includes a section of a part where it is named, and the part without its sections where none is', () => {
    write(
      'parts/now.lua',
      'local now = 1\n--@section later\n  --@include parts/now\nnow = now + 1\n--@section never\nreturn 0\n',
    );
    write('a.lua', 'if x then\n  --@include parts/now later\nend\n');
    expect(buildLua(folder)).toEqual({ code: 0, stderr: '' });
    expect(read()).toContain('`if x then\nlocal now = 1\nnow = now + 1\nend`');
  });

  it('build-lua puts the values of defined names in their places', () => {
    write('parts/layout.lua', '-- The columns.\n--@define FIRST_COLUMN 17\n--@define LAST_COLUMN 18\n');
    write('a.lua', '--@include parts/layout\nreturn string.byte(text, FIRST_COLUMN, LAST_COLUMN), KEYS[1]\n');
    expect(buildLua(folder)).toEqual({ code: 0, stderr: '' });
    expect(read()).toContain('`return string.byte(text, 17, 18), KEYS[1]`');
  });

  it('build-lua reports drift without writing', () => {
    write('acquire.lua', 'return 1\n');
    expect(buildLua(folder, '--check')).toEqual({
      code: 1,
      stderr: expect.stringContaining('Run: node scripts/build-lua.mjs'),
    });
    expect(buildLua(folder).code).toBe(0);
    appendFileSync(join(folder, 'src/stores/redis/lua/acquire.lua'), 'return 2\n');
    expect(buildLua(folder, '--check')).toEqual({ code: 1, stderr: expect.stringContaining('differs') });
    expect(read()).not.toContain('return 2');
  });

  it.each([
    ['no sources', {}, 'no .lua files in src/stores/redis/lua'],
    ['an unknown part', { 'a.lua': '--@include parts/gone\nreturn 1' }, 'parts/gone.lua does not exist'],
    ['an unknown section', { 'a.lua': '--@include a gone\n' }, 'a.lua has no section gone'],
    ['a part that includes itself', { 'a.lua': '--@include a\n' }, 'a.lua includes itself'],
    ['a name without a value', { 'a.lua': 'return FIRST_COLUMN' }, 'a.lua does not define FIRST_COLUMN'],
    [
      'a name with two values',
      { 'a.lua': '--@define FIRST_COLUMN 1\n--@define FIRST_COLUMN 2\n' },
      'a.lua defines FIRST_COLUMN twice',
    ],
    [
      'a comment over several lines',
      { 'a.lua': '--[[\n text\n]]\nreturn 1' },
      'a.lua uses a text or comment over several lines',
    ],
  ])('build-lua refuses %s', (_, files, message) => {
    for (const [name, source] of Object.entries(files)) write(name, source);
    expect(buildLua(folder)).toEqual({ code: 1, stderr: expect.stringContaining(message) });
  });
});
