import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { matrixOnly } from '../support/jest/matrix-only.json';
import { readDocument, root, sectionOf, tableOf } from './markdown.ts';

// A page names a test by its id, `[release-03]`, which begins its title: the words after it may be changed.

/** Its tables say which test shows what the pages for users promise. */
const page = 'test/PROMISES.md';

interface Named {
  readonly id: string;
  readonly file: string;
}

/** The links of a text to tests. A link to a whole file has its name in place of an id. */
function testsIn(text: string): Named[] {
  const links = text.matchAll(/\[([^\]]+)\]\((\S+?\.test\.ts)\)/g);
  return [...links].map(([, id = '', file = '']) => ({ id, file: join('test', file) }));
}

function isId({ id }: Named): boolean {
  return /-\d\d$/.test(id);
}

/** The rows of the tables of a text whose first column is named `head`. */
function tablesOf(text: string, head: string): string[][] {
  const tables = text.match(/(^\|.*\|\n?)+/gm) ?? [];
  return tables
    .map((table) => table.trimEnd().split('\n'))
    .filter(([line = '']) => line.startsWith(`| ${head} |`))
    .flatMap((lines) => lines.slice(2).map((line) => line.slice(2, -2).split(' | ')));
}

/** The same page is at another address for each of those that link to it. */
function withoutLinks(row: readonly string[]): string[] {
  return row.map((cell) => cell.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1'));
}

/** The ids in a source's titles of tests and suites that are run. */
function idsOf(source: string): string[] {
  const titles = /(?:^\s*(?:it|describe(?:Frameworks|Styles)?)|\))\(\s*['`]\[([a-z0-9-]+-\d\d)\] /gm;
  return [...source.matchAll(titles)].map(([, id = '']) => id);
}

const tests = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .flatMap((name) => idsOf(readDocument(join('test', name))).map((id) => ({ id, file: join('test', name) })));
const named = testsIn(readDocument(page));

it('each id is that of one test', () => {
  const ids = tests.map(({ id }) => id).sort();
  expect(ids).toEqual([...new Set(ids)]);
});

it('the page names tests that exist, and all that have an id', () => {
  const key = ({ id, file }: Named): string => `${id} in ${file}`;
  expect([...new Set(named.filter(isId).map(key))].sort()).toEqual(tests.map(key).sort());
});

/** Rows about servers that `npm test` has none of. */
const ofOtherTopologies = /^(failover|sentinel)-\d\d$/;

it('every promise has a test that runs without `MATRIX=all`, but for those about another topology', () => {
  const late = named.filter(({ file }) => matrixOnly.includes(file)).map(({ id }) => id);
  expect(late.filter((id) => !ofOtherTopologies.test(id))).toEqual([]);
});

it('CONTRIBUTING.md lists the files that run with `MATRIX=all` alone, which exist', () => {
  const table = tableOf(sectionOf(readDocument('CONTRIBUTING.md'), 'What only the matrix runs'));
  expect(table.map(({ file }) => file)).toEqual(matrixOnly.map((file) => `\`${file}\``));
  for (const file of matrixOnly) expect([file, existsSync(join(root, file))]).toEqual([file, true]);
});

describe.each([
  ['docs/concepts/release.md', 'situation', 'Releases'],
  ['docs/concepts/promises.md', 'what happens', 'Faults'],
])('The promises of %s', (usersPage, head, title) => {
  const all = tablesOf(sectionOf(readDocument(page), title), head).map(withoutLinks);

  it('are rows of test/PROMISES.md, word for word', () => {
    const promised = tablesOf(readDocument(usersPage), head).map(withoutLinks);
    expect(promised.length).toBeGreaterThan(4);
    const known = all.map(([what, result]) => [what, result]);
    for (const [what, result] of promised) expect(known).toContainEqual([what, result]);
  });

  it('have at least one test in every row there', () => {
    for (const row of tablesOf(sectionOf(readDocument(page), title), head))
      expect([row, testsIn(row.at(-1) ?? '').length > 0]).toEqual([row, true]);
  });
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
