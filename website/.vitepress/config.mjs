import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { defineConfig } from 'vitepress';
import llmstxt from 'vitepress-plugin-llms';
import { outline } from '../outline.mjs';

const pages = join(import.meta.dirname, '../pages');
const { description } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));

/** What the build has put into `pages`; a dead link there fails it. */
export default defineConfig({
  title: 'reenlock',
  description,
  srcDir: 'pages',
  outDir: 'dist',
  lastUpdated: false,
  markdown: { config: (markdown) => markdown.core.ruler.push('repository-links', unlinkRepository) },
  vite: { plugins: [llmstxt({ domain: '' })] },
  themeConfig: { search: { provider: 'local' }, outline: [2, 3], sidebar: sidebar() },
});

function sidebar() {
  const groups = outline.filter(([, folder]) => existsSync(join(pages, folder)));
  return groups.map(([text, folder, first]) => {
    const found = readdirSync(join(pages, folder)).filter((name) => name.endsWith('.md'));
    const names = found.map((name) => name.slice(0, -'.md'.length)).sort();
    const known = first.filter((name) => names.includes(name));
    const ordered = [...known, ...names.filter((name) => !known.includes(name))];
    const items = ordered.map((name) => ({ text: titleOf(join(folder, name)), link: `/${folder}/${name}` }));
    if (folder === 'reference') items.push({ text: 'API', link: '/reference/api/' });
    return { text, items };
  });
}

function titleOf(page) {
  const [, title = page] = /^# (.*)$/m.exec(readFileSync(join(pages, `${page}.md`), 'utf8')) ?? [];
  return title.replaceAll('`', '');
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
