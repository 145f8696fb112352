import { linksOf, readDocument } from './markdown.ts';
import { pages } from './workshop.ts';

const others = pages().filter((page) => page !== 'docs/index.md');

it('The index of the pages leads to each of them', () => {
  const linked = linksOf(readDocument('docs/index.md')).map((target) => `docs/${target}`);
  expect([...new Set(linked)].sort()).toEqual([...others].sort());
});

it('Every folder of pages has its place on the site', () => {
  const [, list = ''] = /outline = (\[.*\]);/s.exec(readDocument('website/outline.mjs')) ?? [];
  const places = [...list.matchAll(/\[\s*'[^']+',\s*'([^']+)',\s*\[([^\]]*)\],?\s*\]/g)].map(
    ([, folder = '', first = '']) => ({
      folder,
      first: [...first.matchAll(/'([^']+)'/g)].map(([, name]) => `docs/${folder}/${name}.md`),
    }),
  );
  const folders = new Set(others.map((page) => page.split('/')[1]));
  expect([...folders].filter((folder) => !places.some((place) => place.folder === folder))).toEqual([]);
  expect(places.flatMap(({ first }) => first).filter((page) => !others.includes(page))).toEqual([]);
});
