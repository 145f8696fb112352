import { cpSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Application } from 'typedoc';
import { build } from 'vitepress';

const root = dirname(import.meta.dirname);
const pages = join(import.meta.dirname, 'pages');

// The pages of the package, and a reference of what each of its subpaths exports.
rmSync(pages, { recursive: true, force: true });
cpSync(join(root, 'docs'), pages, { recursive: true });
// Where the pages' links lead to.
cpSync(join(root, 'bench/curves'), join(import.meta.dirname, 'bench/curves'), { recursive: true });
await writeReference(join(pages, 'reference/api'));
await build(import.meta.dirname);

async function writeReference(folder) {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const subpaths = new Map(Object.entries(exports).flatMap(([subpath, { types }]) => entryOf(subpath, types)));
  const application = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: [...subpaths.keys()],
    tsconfig: join(root, 'tsconfig.json'),
    outputs: [{ name: 'markdown', path: folder }],
    name: 'API',
    router: 'module',
    readme: 'none',
    entryFileName: 'index',
    disableSources: true,
    excludeInternal: true,
    hideBreadcrumbs: true,
    hidePageHeader: true,
    sanitizeComments: true,
    useCodeBlocks: true,
    logLevel: 'Warn',
    validation: { invalidLink: true, notExported: false },
    treatWarningsAsErrors: true,
  });
  const entries = application.getEntryPoints();
  if (entries === undefined)
    throw new Error('Expected all entry points of package.json to be read: typedoc says why not');
  const named = entries.map((entry) => ({ ...entry, displayName: subpaths.get(entry.sourceFile.fileName) }));
  const project = application.converter.convert(named);
  await application.generateOutputs(project);
  if (application.logger.hasErrors() || application.logger.hasWarnings())
    throw new Error('typedoc has warnings: see above');
}

/** The source behind the types of a subpath, and what users import. */
function entryOf(subpath, types) {
  if (types === undefined) return [];
  const source = types.replace('./dist/', 'src/').replace(/\.d\.ts$/, '.ts');
  return [[join(root, source), join('reenlock', subpath)]];
}
