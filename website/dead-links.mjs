import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The links of a built site that lead to no page, file or anchor of it, each with the page that it is on. */
export function deadLinks(site) {
  const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'));
  const texts = new Map(pages.map((page) => [page, readFileSync(join(site, page), 'utf8')]));
  const anchors = new Map([...texts].map(([page, text]) => [page, new Set(valuesOf(text, 'id'))]));
  const isDead = (page, href) => {
    const [path, anchor] = decodeURIComponent(href).split('#');
    if (/^[a-z]+:/.test(path)) return false;
    const target = path === '' ? page : fileOf(site, path.startsWith('/') ? path : join('/', dirname(page), path));
    if (!existsSync(join(site, target))) return true;
    return Boolean(anchor) && !anchors.get(target)?.has(anchor);
  };
  return [...texts].flatMap(([page, text]) =>
    [...new Set(valuesOf(text, 'href'))].filter((href) => isDead(page, href)).map((href) => `${page}: ${href}`),
  );
}

/** The file behind an address of the site: a folder's is its index. */
function fileOf(site, path) {
  const file = path.slice(1);
  if (file === '' || file.endsWith('/')) return `${file}index.html`;
  return existsSync(join(site, `${file}.html`)) ? `${file}.html` : file;
}

function valuesOf(text, attribute) {
  return [...text.matchAll(new RegExp(`\\s${attribute}="([^"]*)"`, 'g'))].map(([, value]) =>
    value.replaceAll('&amp;', '&'),
  );
}
