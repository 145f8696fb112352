import { cpSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'vitepress';
import { writeReference } from './api.mjs';
import { deadLinks } from './dead-links.mjs';

const root = dirname(import.meta.dirname);
const pages = join(import.meta.dirname, 'pages');

// The pages of the package, and a reference of what each of its subpaths exports. The list of pages makes room for a first
// page of the site's own, whose code is that of two examples,
// and whose picture the README shows, too.
rmSync(pages, { recursive: true, force: true });
cpSync(join(root, 'docs'), pages, { recursive: true });
cpSync(join(pages, 'index.md'), join(pages, 'pages.md'));
cpSync(join(import.meta.dirname, 'home.md'), join(pages, 'index.md'));
for (const name of ['first-lock', 'nest-first-lock'])
  cpSync(join(root, 'examples', name), join(pages, name), { recursive: true });
cpSync(join(import.meta.dirname, 'public'), join(pages, 'public'), { recursive: true });
cpSync(join(root, 'docs/pictures/demo.svg'), join(pages, 'public/demo.svg'));
await writeReference(join(pages, 'reference/api'));
await build(import.meta.dirname);

const dead = deadLinks(join(import.meta.dirname, 'dist'));
if (dead.length > 0)
  throw new Error(`Expected each link of the site to lead to a page or a heading:\n${dead.join('\n')}`);
