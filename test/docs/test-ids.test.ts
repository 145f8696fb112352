import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Row, readDocument, root, sectionOf, tableOf } from './markdown.ts';

// A page names a test by its id, `[release-03]`, which begins its title: the words after it may be changed.

/** The pages whose tables say which test shows what they promise. */
const pages = ['docs/http-life.md', 'docs/reliability.md'];

interface Named {
  readonly id: string;
  readonly file: string;
}

/** The links of a text to tests. A link to a whole file has its name in place of an id. */
function testsIn(text: string): Named[] {
  const links = text.matchAll(/\[([^\]]+)\]\(\.\.\/(test\/\S+?\.test\.ts)\)/g);
  return [...links].map(([, id = '', file = '']) => ({ id, file }));
}

function isId({ id }: Named): boolean {
  return /-\d\d$/.test(id);
}

/** The ids in a source's titles of tests and suites that are run. */
function idsOf(source: string): string[] {
  const titles = /(?:^\s*(?:it|describe|describeFrameworks)|\))\(\s*['`]\[([a-z0-9-]+-\d\d)\] /gm;
  return [...source.matchAll(titles)].map(([, id = '']) => id);
}

const tests = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .flatMap((name) => idsOf(readDocument(join('test', name))).map((id) => ({ id, file: join('test', name) })));
const named = pages.flatMap((page) => testsIn(readDocument(page)));

it('each id is that of one test', () => {
  const ids = tests.map(({ id }) => id).sort();
  expect(ids).toEqual([...new Set(ids)]);
});

it('the pages name tests that exist, and all that have an id', () => {
  const key = ({ id, file }: Named): string => `${id} in ${file}`;
  expect([...new Set(named.filter(isId).map(key))].sort()).toEqual(tests.map(key).sort());
});

it('every row of the tables of releases names a situation, a moment and a test', () => {
  const document = readDocument('docs/http-life.md');
  const sections = [...document.matchAll(/^## (.*)$/gm)].map(([, title = '']) => title);
  const rows: Row[] = sections.flatMap((title) => tableOf(sectionOf(document, title)));
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) {
    const cells = Object.values(row);
    expect([cells.length, cells.every((cell) => cell !== '')]).toEqual([3, true]);
    expect([row, testsIn(cells[2] as string).some(isId)]).toEqual([row, true]);
  }
});

it('every row of the tables of promises names a test', () => {
  const lines = readDocument('docs/reliability.md').split('\n');
  const rows = lines.filter((line) => line.startsWith('|') && testsIn(line).length > 0);
  expect(rows.length).toBeGreaterThan(20);
  for (const row of rows) expect([row, row.split('|').length > 4]).toEqual([row, true]);
});

it('an id of a test that is skipped, or is only spoken of, is found missing', () => {
  const id = (number: string): string => `[a-${number}]`;
  const source = [
    `it('${id('01')} is there', async () => {});`,
    `it.each([1])('${id('02')} is %s there', (one) => {});`,
    `it(\`${id('03')} is there\`, () => {});`,
    `describe('${id('04')} are there', () => {});`,
    `it.skip('${id('05')} is skipped', () => {});`,
    `// it('${id('06')} was there once', () => {});`,
    `note('${id('07')} is noted');`,
  ].join('\n');
  expect(idsOf(source)).toEqual(['a-01', 'a-02', 'a-03', 'a-04']);
});
