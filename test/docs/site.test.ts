import { linksOf, readDocument } from './markdown.ts';
import { pages } from './workshop.ts';

interface Group {
  readonly text: string;
  readonly folder: string;
  readonly pages: Readonly<Record<string, string>>;
}

const others = pages().filter((page) => page !== 'docs/index.md');
const groups = JSON.parse(readDocument('website/outline.json')) as readonly Group[];
const shown = groups.flatMap(({ folder, pages: titles }) =>
  Object.entries(titles).map(([name, title]) => ({ page: `docs/${folder}/${name}.md`, title })),
);

it('The index of the pages leads to each of them', () => {
  const linked = linksOf(readDocument('docs/index.md')).map((target) => `docs/${target}`);
  expect([...new Set(linked)].sort()).toEqual([...others].sort());
});

it('Every page has its place in website/outline.json, and no other', () => {
  expect(shown.map(({ page }) => page).sort()).toEqual([...others].sort());
});

it('The sidebar of the site has titles of at most three words', () => {
  const titles = [...groups.map(({ text }) => text), ...shown.map(({ title }) => title)];
  expect(titles.filter((title) => title.split(' ').length > 3)).toEqual([]);
});

it('The sidebar of the site shows at most 25 entries, whichever of its groups is open', () => {
  const sizes = groups.map(({ pages: titles }) => Object.keys(titles).length);
  // The group of the API is one more.
  expect(groups.length + 1 + Math.max(...sizes)).toBeLessThanOrEqual(25);
});
