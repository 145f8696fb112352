import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { anchorOf, headingsOf, linksOf, readDocument, root } from './markdown.ts';
import { documents } from './workshop.ts';

const linked = [
  ...documents(),
  'CONTRIBUTING.md',
  'SECURITY.md',
  'SUPPORT.md',
  'CODE_OF_CONDUCT.md',
  'CHANGELOG.md',
  'examples/README.md',
  'bench/README.md',
];

it.each(linked)('Every relative link in %s leads to a file or a heading that exists', (document) => {
  const relative = linksOf(readDocument(document)).filter((target) => !/^[a-z]+:/.test(target));
  expect(relative.filter((target) => !leadsSomewhere(document, target))).toEqual([]);
});

it('A link to a missing file or heading is found', () => {
  const text = '# A `heading`, with signs\n[1](#a-heading-with-signs) [2](#none) [3](LICENSE) [4](docs/none.md)\n';
  expect(headingsOf(text).map(anchorOf)).toEqual(['a-heading-with-signs']);
  expect(linksOf(text)).toEqual(['#a-heading-with-signs', '#none', 'LICENSE', 'docs/none.md']);
  const inReadme = ['#quick-start', '#none', 'LICENSE', 'docs/none.md', 'examples/README.md#none', 'src'];
  expect(inReadme.filter((target) => leadsSomewhere('README.md', target))).toEqual(['#quick-start', 'LICENSE', 'src']);
});

it.each(documents())('No two headings of %s have one anchor', (document) => {
  const anchors = headingsOf(readDocument(document)).map(anchorOf);
  expect(anchors).toEqual([...new Set(anchors)]);
});

function leadsSomewhere(document: string, target: string): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? document : join(dirname(document), path);
  if (!existsSync(join(root, file))) return false;
  if (anchor === undefined) return true;
  return statSync(join(root, file)).isFile() && headingsOf(readDocument(file)).map(anchorOf).includes(anchor);
}
