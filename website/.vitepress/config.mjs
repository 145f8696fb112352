import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { defineConfig } from 'vitepress';
import llmstxt from 'vitepress-plugin-llms';
import { slug } from '../slug.mjs';
import { labelCells } from '../tables.mjs';

const read = (path) => JSON.parse(readFileSync(join(import.meta.dirname, path), 'utf8'));
const { description, exports, repository, version } = read('../../package.json');

/** What the build has put into `pages`; a dead link there fails it. */
export default defineConfig({
  title: 'reenlock',
  description,
  srcDir: 'pages',
  outDir: 'dist',
  lastUpdated: false,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/logo.svg' }]],
  markdown: {
    anchor: { slugify: slug },
    // Their comments and keywords are dark enough to read.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-default' },
    config: ({ core }) => {
      core.ruler.push('repository-links', unlinkRepository);
      core.ruler.push('cell-labels', labelCells);
    },
  },
  vite: { plugins: [llmstxt({ domain: '' })] },
  themeConfig: {
    logo: '/logo.svg',
    nav: [
      { text: 'Guide', link: '/start/quick-start' },
      { text: 'Reference', link: '/reference/options' },
      { text: 'API', link: '/reference/api/' },
      { text: `v${version}`, link: '/pages' },
    ],
    ...(repository && { socialLinks: [{ icon: 'github', link: repository.url.replace(/^git\+|\.git$/g, '') }] }),
    search: { provider: 'local', options: { miniSearch: { searchOptions: { boostDocument: guidesFirst } } } },
    outline: [2, 3],
    sidebar: { '/': sidebar(false), '/reference/api/': sidebar(true) },
  },
  // The sidebar has no entry for each name of the API, so that its first page would be the next one.
  transformPageData({ frontmatter, relativePath }) {
    if (relativePath.startsWith('reference/api/'))
      Object.assign(frontmatter, { prev: false, next: false, pageClass: 'api' });
  },
});

/** A word is more often looked for in a guide than in the reference. The browser runs this: it may use nothing from above. */
function guidesFirst(page) {
  if (page.includes('/reference/api/')) return 0.05;
  return page.includes('/reference/') ? 0.5 : 1;
}

/** Below a name of the API, its group is open: the names are in no group of the sidebar. */
function sidebar(isApi) {
  const groups = read('../outline.json').map(({ text, folder, pages }) => ({
    text,
    collapsed: true,
    items: Object.entries(pages).map(([page, title]) => ({ text: title, link: `/${folder}/${page}` })),
  }));
  const subpaths = Object.keys(exports).filter((subpath) => !subpath.endsWith('.json'));
  const api = subpaths.map((subpath) => ({
    text: join('reenlock', subpath),
    link: `/reference/api/${join('reenlock', subpath)}/`,
  }));
  return [...groups, { text: 'API', collapsed: !isApi, items: api }];
}

/** Pages also lead to files of the repository, such as examples, which the site does not have: their names stay, as text. */
function unlinkRepository({ tokens, env }) {
  for (const { children } of tokens) {
    let isOutside = false;
    for (const token of children ?? []) {
      const href = token.type === 'link_open' ? token.attrGet('href') : undefined;
      if (href !== undefined && isOutsideOf(env.relativePath, href)) isOutside = true;
      if (!isOutside) continue;
      if (token.type === 'link_close') isOutside = false;
      if (token.type.startsWith('link_')) Object.assign(token, { tag: 'span', attrs: null });
    }
  }
}

function isOutsideOf(page, href) {
  return !/^[a-z]+:|^[/#]/.test(href) && normalize(join(dirname(page), href)).startsWith('..');
}
