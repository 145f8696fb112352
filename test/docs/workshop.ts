import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { runBinary } from '../package/packed.ts';
import { type Block, blocksOf, readDocument, root } from './markdown.ts';

/** A document's TypeScript as modules in a folder of this repository, to compile and to run. */
export class Workshop {
  readonly folder: string;

  /** The dot keeps the folder out of everybody else's sight. */
  constructor() {
    this.folder = mkdtempSync(join(root, 'test/docs/.documents-'));
    this.write('package.json', JSON.stringify({ type: 'module' }));
  }

  write(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  }

  /** Writes every block, each as a module; those that name a file get that name, so that they find each other. */
  add(document: string): readonly Block[] {
    const blocks = blocksOf(readDocument(document)).filter(({ language }) => language === 'ts');
    for (const [index, { file, prelude, code }] of blocks.entries()) {
      const before = prelude === undefined ? '' : readFileSync(join(__dirname, 'preludes', `${prelude}.ts`), 'utf8');
      this.write(file ?? `${document.replace(/\W/g, '-')}-${index}.ts`, before + code);
    }
    return blocks;
  }

  /** Compiles all of it under the options of the repository; throws with what the compiler says. */
  compile(): void {
    // By name: the compiler finds nothing in folders that begin with a dot.
    const files = readdirSync(this.folder).filter((name) => name.endsWith('.ts'));
    const base = join(relative(this.folder, root), 'tsconfig.json');
    this.write('tsconfig.json', JSON.stringify({ extends: base, files, include: [] }));
    runBinary('tsc', ['-p', this.folder], this.folder);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

/** All documents that may have code. */
export function documents(): string[] {
  const inDocs = readdirSync(root).includes('docs') ? readdirSync(join(root, 'docs')) : [];
  return ['README.md', ...inDocs.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)];
}
