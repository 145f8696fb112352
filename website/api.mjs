import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Application, Comment } from 'typedoc';

const root = dirname(import.meta.dirname);

/** Writes a reference of what each subpath of the package exports: a page for each of them, functions first, and one a name. */
export async function writeReference(folder) {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const subpaths = new Map(Object.entries(exports).flatMap(([subpath, { types }]) => entryOf(subpath, types)));
  const application = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: [...subpaths.keys()],
    tsconfig: join(root, 'tsconfig.json'),
    outputs: [{ name: 'markdown', path: folder }],
    name: 'API',
    router: 'member',
    readme: 'none',
    entryFileName: 'index',
    groupOrder: ['Functions', 'Variables', 'Classes', 'Interfaces', 'Type Aliases'],
    disableSources: true,
    excludeInternal: true,
    // What errors inherit from JavaScript's own.
    excludeExternals: true,
    indexFormat: 'table',
    parametersFormat: 'table',
    hidePageHeader: true,
    sanitizeComments: true,
    useCodeBlocks: true,
    expandParameters: true,
    logLevel: 'Warn',
    validation: { invalidLink: true, notExported: false },
    treatWarningsAsErrors: true,
  });
  const entries = application.getEntryPoints();
  if (entries === undefined)
    throw new Error('Expected all entry points of package.json to be read: typedoc says why not');
  const named = entries.map((entry) => ({ ...entry, displayName: subpaths.get(entry.sourceFile.fileName) }));
  const project = application.converter.convert(named);
  for (const module of project.children) module.comment = commentOf(named, module.name);
  await application.generateOutputs(project);
  if (application.logger.hasErrors() || application.logger.hasWarnings())
    throw new Error('typedoc has warnings: see above');
  for (const name of readdirSync(folder, { recursive: true }))
    if (name.endsWith('index.md')) shorten(join(folder, name));
}

/** What the first comment of an entry point says, without the name that its users import. */
function commentOf(entries, name) {
  const { sourceFile } = entries.find(({ displayName }) => displayName === name);
  const [, text] = /^\/\*\* (.*) \*\/$/m.exec(sourceFile.text);
  return new Comment([{ kind: 'text', text: text.replace(`: \`${name}\``, '') }]);
}

/** Leaves the first sentence of each description in a list of names: the name's own page has all of them. */
function shorten(file) {
  const rows = /^(\| \[.+?\]\(.+?\) \| .+?[.!?]) .*\|$/gm;
  writeFileSync(file, readFileSync(file, 'utf8').replace(rows, '$1 |'));
}

/** The source behind the types of a subpath, and what users import. */
function entryOf(subpath, types) {
  if (types === undefined) return [];
  const source = types.replace('./dist/', 'src/').replace(/\.d\.ts$/, '.ts');
  return [[join(root, source), join('reenlock', subpath)]];
}
