import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createConsumer, packPackage, runBinary } from './packed.ts';

/** What an example may use of the application around it. */
const application = `
declare const db: { query(sql: string, values?: readonly unknown[]): Promise<{ readonly rowCount: number }> };
declare function charge(orderId: string, signal?: AbortSignal): Promise<void>;
declare function moveMoney(from: string, to: string, amount: number): Promise<void>;
declare function rebuildCache(signal?: AbortSignal): Promise<void>;
declare function writeReport(signal?: AbortSignal): Promise<void>;
declare function isOperator(authorization: string | undefined): boolean;
declare const MyStore: typeof import('reenlock').MemoryStore;
`;

/** The interfaces whose methods users call. */
const interfaces = ['LockFunctions', 'Lock', 'Hold', 'Locks', 'TestLocks', 'TestClock'];

const packed = packPackage().unpacked;
const { exports } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8')) as {
  exports: Record<string, { types?: string }>;
};
const entries = Object.entries(exports).flatMap(([name, { types }]) => (types === undefined ? [] : [[name, types]]));

it.each(entries as [string, string][])('Each function, class and value of %s has an example', (_, types) => {
  const names = exportedFrom(join(packed, types));
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter(([file, name]) => !hasExample(file, name)).map(([, name]) => name)).toEqual([]);
});

it('Each method of a lock, a hold, a `Locks` and a `TestLocks` has an example', () => {
  const members = [...declarations()].flatMap(([file, text]) =>
    interfaces.flatMap((name) => membersOf(text, name).map((member) => ({ file, ...member }))),
  );
  expect(members.length).toBeGreaterThan(35);
  expect(members.filter(({ comment }) => exampleIn(comment) === undefined).map(({ name }) => name)).toEqual([]);
});

it('Every example has 3 to 10 lines, and compiles', () => {
  const consumer = createConsumer(packPackage(), same('prom-client', '@opentelemetry/api', 'koa-mount', 'vitest'));
  try {
    const files = [...declarations()].flatMap(([file, text]) =>
      commentsOf(text).flatMap((comment) => {
        const code = exampleIn(comment);
        return code === undefined ? [] : [[file, code] as const];
      }),
    );
    const names = files.map(([file, code], at) => {
      const name = `${file.replace(/\W+/g, '-')}-${at}.ts`;
      writeFileSync(join(consumer.folder, name), `${code}\nexport {};\n`);
      return name;
    });
    expect(files.filter(([, code]) => code.split('\n').length < 3 || code.split('\n').length > 10)).toEqual([]);
    expect(files.length).toBeGreaterThan(80);
    writeFileSync(join(consumer.folder, 'application.d.ts'), application);
    writeFileSync(join(consumer.folder, 'package.json'), JSON.stringify({ type: 'module' }));
    writeFileSync(join(consumer.folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
    expect(names).toHaveLength(new Set(names).size);
    runBinary('tsc', ['-p', consumer.folder], consumer.folder);
  } finally {
    consumer.remove();
  }
});

const compilerOptions = {
  target: 'es2022',
  lib: ['es2023', 'esnext.disposable'],
  module: 'nodenext',
  types: ['node'],
  strict: true,
  // Nest knows no others.
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  skipLibCheck: true,
  preserveSymlinks: true,
  noEmit: true,
};

function same(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, join('node_modules', name)]));
}

/** Each file of the built types, with its text. */
function* declarations(): Generator<[file: string, text: string]> {
  const folder = join(packed, 'dist');
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort())
    if (file.endsWith('.d.ts')) yield [file, readFileSync(join(folder, file), 'utf8')];
}

/** The names that a file of types exports as values, each with the file that declares it. */
function exportedFrom(path: string): [file: string, name: string][] {
  const text = readFileSync(path, 'utf8');
  const lists = text.matchAll(/^export \{([^}]*)\} from '([^']+)';/gm);
  return [...lists].flatMap(([, list = '', from = '']) =>
    list
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '' && !name.startsWith('type '))
      .map((name): [string, string] => [join(dirname(path), from.replace(/\.ts$/, '.d.ts')), name]),
  );
}

/** Whether the comment right before one of a name's declarations has an example. */
function hasExample(file: string, name: string): boolean {
  const text = readFileSync(file, 'utf8');
  const declared = new RegExp(`^export declare (?:function|(?:abstract )?class|const) ${name}\\b`, 'm').exec(text);
  if (declared === null) throw new Error(`Expected ${file} to declare ${name}`);
  return exampleIn(commentBefore(text, declared.index)) !== undefined;
}

/** The methods of an interface, each with the comment before it. */
function membersOf(text: string, name: string): { name: string; comment: string }[] {
  const head = new RegExp(`^export interface ${name}\\b.*\\{$`, 'm').exec(text);
  if (head === null) return [];
  const body = text.slice(head.index, text.indexOf('\n}', head.index));
  return [...body.matchAll(/^ {4}(\w+)(?:<.*?>)?\(/gm)].map((member) => ({
    name: `${name}.${member[1]}`,
    comment: commentBefore(body, member.index),
  }));
}

function commentBefore(text: string, index: number): string {
  const before = text.slice(0, index).trimEnd();
  return before.endsWith('*/') ? before.slice(before.lastIndexOf('/**')) : '';
}

function commentsOf(text: string): string[] {
  return [...text.matchAll(/\/\*\*[\s\S]*?\*\//g)].map(([comment]) => comment);
}

/** The code of a comment's `@example`. */
function exampleIn(comment: string): string | undefined {
  const lines = comment.split('\n').map((line) => line.replace(/^\s*\* ?/, ''));
  const [, example] = lines.join('\n').split('@example\n');
  return example === undefined ? undefined : /^```ts\n([\s\S]*?)\n```/.exec(example)?.[1];
}
