import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { linksOf, type Row, readDocument, root, sectionOf, tableOf } from './markdown.ts';

const document = readDocument('docs/http-life.md');
const sections = [...document.matchAll(/^## (.*)$/gm)].map(([, title = '']) => title);
const shows = 'the test that shows it';
const rows: Row[] = sections.flatMap((title) => tableOf(sectionOf(document, title)));

/** The tests that a row names: their file, and their title in it. */
function testsOf(row: Row): { file: string; title: string }[] {
  const groups = [...(row[shows] ?? '').matchAll(/\]\(\.\.\/(\S+?)\)((?:,? "[^"]+")+)/g)];
  return groups.flatMap(([, file = '', titles = '']) =>
    [...titles.matchAll(/"([^"]+)"/g)].map(([, title = '']) => ({ file, title })),
  );
}

/** Whether a source has a test that is run under this title; what it fills in itself matches anything. */
function hasTest(source: string, title: string): boolean {
  const calls = /(?:^\s*it|\))\(\s*(?:'((?:[^'\\\n]|\\.)+)'|`((?:[^`\\\n]|\\.)+)`),\s*(?:async\b|\()/gm;
  return [...source.matchAll(calls)].some(([, plain, template]) => {
    const parts = plain === undefined ? (template ?? '').split(/\$\{[^}]*\}/) : [plain];
    return new RegExp(`^${parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('.+')}$`).test(title);
  });
}

it('every row of the table of releases names a situation, a moment and a test', () => {
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) {
    const cells = Object.values(row);
    expect([cells.length, cells.every((cell) => cell !== '')]).toEqual([3, true]);
    expect([row[shows], testsOf(row).length > 0]).toEqual([row[shows], true]);
    // Nothing between the files and the titles was overlooked.
    expect((row[shows]?.match(/"/g) ?? []).length).toBe(2 * testsOf(row).length);
  }
});

it.each(rows.flatMap(testsOf))(
  'the test that the table of releases names exists: $file "$title"',
  ({ file, title }) => {
    expect(hasTest(readDocument(file), title)).toBe(true);
  },
);

it('every link of the table of releases leads to a file', () => {
  const files = linksOf(document).map((target) => join('docs', target.split('#')[0] ?? ''));
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

it('a test that does not exist, that is skipped, or is only spoken of, is found missing', () => {
  const source = [
    "it('is there', async () => {});",
    "it.each([1])('is %s there', (one) => {});",
    "it(`is ${always ? 'still' : 'not'} there`, () => {});",
    "it.skip('is skipped', () => {});",
    "// it('was there once', () => {});",
    "note('is noted');",
  ].join('\n');
  const titles = ['is there', 'is %s there', 'is still there', 'is skipped', 'was there once', 'is noted', 'is'];
  expect(titles.filter((title) => hasTest(source, title))).toEqual(['is there', 'is %s there', 'is still there']);
});
