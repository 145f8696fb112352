import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { type Options, transformSync } from '@swc/core';
import { packPackage, runBinary } from '../package/packed.ts';
import { type Block, blocksOf, readDocument, root } from './markdown.ts';

/** A block that was written as a module, and what follows it in the document. */
export interface Module extends Block {
  readonly path: string;
  /** What it prints, where the document says so: the block after it, marked `<!-- output -->`. */
  readonly output: string | undefined;
}

/** Nest knows legacy decorators only. */
export const nestPage = 'docs/frameworks/nest.md';

/** Documents' TypeScript as modules in a folder of this repository, to compile, and to run with the package as it is published. */
export class Workshop {
  readonly #folder: string;
  #built: string | undefined;

  /** The dot keeps the folder out of everybody else's sight. */
  constructor() {
    this.#folder = mkdtempSync(join(root, 'test/docs/.documents-'));
    this.write('package.json', JSON.stringify({ type: 'module' }));
  }

  write(name: string, text: string): string {
    const path = join(this.#folder, name);
    writeFileSync(path, text);
    return path;
  }

  /**
   * Writes every block, each as a module, in a folder of the document's own; those that name a file get that name, so that
   * they find each other.
   */
  add(document: string): readonly Module[] {
    mkdirSync(join(this.#folder, folderOf(document)));
    const blocks = blocksOf(readDocument(document));
    return blocks.flatMap((block, at) => {
      if (block.language !== 'ts') return [];
      const { file, marks } = block;
      const { prelude } = marks;
      const code = withAlias(block);
      const before = prelude === undefined ? '' : readFileSync(join(__dirname, 'preludes', `${prelude}.ts`), 'utf8');
      const path = this.write(join(folderOf(document), file ?? `line-${block.line}.ts`), before + code);
      const next = blocks[at + 1];
      return [{ ...block, path, output: next?.marks.output === undefined ? undefined : next.code }];
    });
  }

  /** Where a block of a document is that names its file. */
  path(document: string, file: string): string {
    return join(this.#folder, folderOf(document), file);
  }

  /** Makes JavaScript of all modules, beside the published package, and returns where each of them is. */
  build(): (path: string) => string {
    this.#built = mkdtempSync(join(dirname(packPackage().tarball), 'documents-'));
    writeFileSync(join(this.#built, 'package.json'), JSON.stringify({ type: 'module' }));
    const built = (path: string): string =>
      join(this.#built as string, relative(this.#folder, path)).replace(/ts$/, 'js');
    for (const path of this.#modules()) {
      mkdirSync(dirname(built(path)), { recursive: true });
      writeFileSync(built(path), transformSync(readFileSync(path, 'utf8'), toModules(path)).code);
    }
    return built;
  }

  /**
   * Compiles all of it under the options of the repository, but that exports need no annotation, and returns what the
   * compiler finds.
   */
  mistakes(...options: string[]): readonly string[] {
    // By name: the compiler finds nothing in folders that begin with a dot.
    const files = this.#modules();
    const base = join(relative(this.#folder, root), 'tsconfig.json');
    const compilerOptions = { isolatedDeclarations: false };
    this.write('tsconfig.json', JSON.stringify({ extends: base, compilerOptions, files, include: [] }));
    try {
      runBinary('tsc', ['-p', this.#folder, ...options], this.#folder);
      return [];
    } catch (error) {
      return (error as Error).message.split('\n').filter((line) => / error TS\d+: /.test(line));
    }
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
    if (this.#built !== undefined) rmSync(this.#built, { recursive: true });
  }

  #modules(): string[] {
    const names = readdirSync(this.#folder, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.ts'));
    return names.map((name) => join(this.#folder, name));
  }
}

/** All documents that may have code. */
export function documents(): string[] {
  return ['README.md', ...pages()];
}

/** The guide pages. */
export function pages(): string[] {
  return readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`);
}

/** Its blocks belong together: `tutorials.test.ts` runs them in their order. */
export function isTutorial(page: string): boolean {
  return page.startsWith('docs/start/tutorials/');
}

/** `<!-- alias: redlock4 for redlock -->`: an old version of a library, which is installed here under another name. */
function withAlias({ code, marks }: Block): string {
  const [alias, , name] = marks.alias?.split(' ') ?? [];
  return alias === undefined ? code : code.replaceAll(`from '${name}'`, `from '${alias}'`);
}

function toModules(path: string): Options {
  const isLegacy = path.includes(folderOf(nestPage));
  return {
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: isLegacy ? { legacyDecorator: true, decoratorMetadata: true } : { decoratorVersion: '2022-03' },
    },
    module: { type: 'es6' },
  };
}

function folderOf(document: string): string {
  return document.replace(/\W/g, '-');
}
