import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readDocument, root } from './markdown.ts';

const document = readDocument('docs/reliability.md');
const rows = document.split('\n').filter((line) => line.startsWith('|') && line.includes('../test/'));

/** What a row names: a test's file, and a part of its title or of its suite's, where not all of the file is meant. */
const named = rows.flatMap((row) =>
  [...row.matchAll(/\]\(\.\.\/(\S+?)\)((?:,? "[^"]+")*)/g)].flatMap(([, file = '', titles = '']) => {
    const all = [...titles.matchAll(/"([^"]+)"/g)].map(([, title = '']) => title);
    return all.length === 0 ? [{ file, title: '' }] : all.map((title) => ({ file, title }));
  }),
);

/** The titles of a source's tests and suites. */
function titlesOf(source: string): string[] {
  const calls = /(?:^\s*(?:it|describe)|\))\(\s*'((?:[^'\\\n]|\\.)+)',\s*(?:async\b|\()/gm;
  return [...source.matchAll(calls)].map(([, title = '']) => title);
}

it('every row of the tables of promises names a test', () => {
  expect(rows.length).toBeGreaterThan(20);
  for (const row of rows) expect([row, row.split('|').length > 4]).toEqual([row, true]);
});

it.each(named)('the test that the page of promises names exists: $file "$title"', ({ file, title }) => {
  expect(existsSync(join(root, file))).toBe(true);
  expect(titlesOf(readDocument(file)).filter((one) => one.includes(title))).not.toEqual([]);
});
