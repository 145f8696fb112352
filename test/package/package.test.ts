import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { dirname, join } from 'node:path';
import * as core from 'reenlock';
import * as express from 'reenlock/express';
import * as fastify from 'reenlock/fastify';
import * as hono from 'reenlock/hono';
import * as koa from 'reenlock/koa';
import * as mysql from 'reenlock/mysql';
import * as nest from 'reenlock/nest';
import * as node from 'reenlock/node';
import * as otel from 'reenlock/otel';
import * as postgres from 'reenlock/postgres';
import * as prometheus from 'reenlock/prometheus';
import * as redis from 'reenlock/redis';
import * as testing from 'reenlock/testing';
import * as contract from 'reenlock/testing/contract';
import { pages } from '../docs/workshop.ts';
import { matrix } from '../support/matrix.ts';
import { createConsumer, packPackage, root, runBinary } from './packed.ts';

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown>;

describe('the surface of the package', () => {
  it.each<[string, object, string]>([
    [
      'reenlock',
      core,
      // Some only say where they are.
      `CasStore DeadlockError HoldTokenError LockAbortedError LockConfigError LockError LockKeyError LockLimitError
       LockLostError LockNotHeldError LockOn LockScopeError LockStoreError LockTimeoutError Locked LocksClosedError
       LocksModule MemoryStore MySqlCas PostgresCas PostgresStore QuorumStore RedisCas RedisStore RetryingStore RunInTrace
       closeServer collectLockMetrics configureLocks configureTestLocks createLocks createTestLocks currentTrace
       describeStoreContract getLock instrumentLocks isLockError lock lockBoard lockOn mysqlCasTable postgresCasTable
       postgresSchema resumeHold runInTrace sendProblem traceContext traceHeaders`,
    ],
    [
      'reenlock/redis',
      redis,
      'CasStore PostgresCas QuorumFailure QuorumStore RedisCas RedisStore RetryingStore postgresCasTable',
    ],
    ['reenlock/postgres', postgres, 'PostgresStore postgresSchema'],
    ['reenlock/mysql', mysql, 'CasStore MySqlCas mysqlCasTable'],
    ['reenlock/node', node, 'closeServer lockBoard lockOn sendProblem traceContext'],
    ['reenlock/express', express, 'closeServer lockBoard lockOn sendProblem traceContext'],
    ['reenlock/koa', koa, 'closeServer lockBoard lockOn sendProblem traceContext'],
    ['reenlock/fastify', fastify, 'closeServer lockBoard lockOn sendProblem traceContext'],
    ['reenlock/hono', hono, 'closeServer lockBoard lockOn sendProblem traceContext'],
    ['reenlock/nest', nest, 'LOCKS LockOn LocksModule RunInTrace lockBoard traceContext'],
    ['reenlock/testing', testing, 'configureTestLocks createTestLocks'],
    ['reenlock/testing/contract', contract, 'describeStoreContract'],
    ['reenlock/prometheus', prometheus, 'collectLockMetrics'],
    ['reenlock/otel', otel, 'instrumentLocks'],
  ])('exports these names from %s, and no others', (_, exported, names) => {
    expect(Object.keys(exported).sort()).toEqual(names.split(/\s+/));
  });

  it('The package can be imported by these paths, and by no others', () => {
    expect(Object.keys(manifest.exports as object)).toEqual([
      '.',
      './redis',
      './postgres',
      './mysql',
      './node',
      './express',
      './koa',
      './hono',
      './fastify',
      './nest',
      './testing',
      './testing/contract',
      './prometheus',
      './otel',
      './package.json',
    ]);
  });

  it('The package names the same types to a compiler that knows no `exports`', () => {
    const { '.': main, './package.json': _, ...others } = manifest.exports as Record<string, { types: string }>;
    expect(manifest.types).toBe(main?.types);
    const named = Object.entries(others).map(([path, { types }]) => [path.slice('./'.length), [types]]);
    expect(manifest.typesVersions).toEqual({ '*': Object.fromEntries(named) });
  });

  it('The package has nothing else in it than the build and the documents', () => {
    expect(manifest.files).toEqual(['dist', 'src/**/*.ts', 'docs', 'CHANGELOG.md', 'SECURITY.md']);
  });

  it('The package tells bundlers that importing it has no effect, and it has none that others could see', () => {
    expect(manifest.sideEffects).toBe(false);
    const shared = Object.getOwnPropertySymbols(globalThis).map((symbol) => Symbol.keyFor(symbol) ?? '');
    expect(shared.filter((name) => name.startsWith('reenlock'))).toEqual([]);
  });

  it('The package needs cls-rtracer, has optional clients and frameworks of any version, and brings no dependency', () => {
    const optional = [
      ...['@nestjs/common', '@nestjs/core', '@opentelemetry/api', 'express', 'fastify', 'hono', 'ioredis'],
      ...['iovalkey', 'koa', 'mysql2', 'pg', 'prom-client', 'redis', 'rxjs'],
    ];
    const ofEach = <T>(value: T) => Object.fromEntries(optional.map((name) => [name, value]));
    expect(manifest.peerDependencies).toEqual({ 'cls-rtracer': '^2.6.4', ...ofEach('*') });
    expect(manifest.peerDependenciesMeta).toEqual(ofEach({ optional: true }));
    expect(manifest).not.toHaveProperty('dependencies');
    expect(manifest).not.toHaveProperty('optionalDependencies');
  });

  it('The package runs on the Node that the README names', () => {
    const { node } = manifest.engines as { node: string };
    const [, named] = /with Node (\S+) or newer/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
    expect(node).toBe(`>=${named}`);
  });
});

describe('the published package', () => {
  let packed: ReturnType<typeof packPackage>;
  beforeAll(() => {
    packed = packPackage();
  });

  it('The published package has the build, its documents and nothing else', () => {
    const documents = [
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'package.json',
      'docs/observe/board.webp',
      ...['demo', 'fence', 'hand-off', 'lease', 'tree', 'two-services'].map((name) => `docs/pictures/${name}.svg`),
      'docs/ops/alerts.yml',
      'docs/ops/grafana-dashboard.json',
      ...pages(),
    ];
    const rooms = readdirSync(join(root, 'src')).map((folder) => `dist/${folder}/`);
    const built = packed.files.filter(
      (file) => rooms.some((room) => file.startsWith(room)) && /\.(js|d\.ts)(\.map)?$/.test(file),
    );
    const sources = packed.files.filter((file) => file.startsWith('src/') && file.endsWith('.ts'));
    expect([...packed.files].sort()).toEqual([...documents, ...built, ...sources].sort());
    expect(built.filter((file) => file.endsWith('.js'))).toEqual(
      expect.arrayContaining(
        ['core/index', 'stores/redis', 'stores/postgres', 'express/index', 'koa/index'].map((f) => `dist/${f}.js`),
      ),
    );
  });

  it('The published package has the size that the README names, within 5 %', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    const [, download = '', onDisk = ''] =
      /The download is ([\d.]+) MB\. On disk the package takes ([\d.]+) MB/.exec(readme) ?? [];
    const unpacked = packed.files.reduce((bytes, file) => bytes + statSync(join(packed.unpacked, file)).size, 0);
    const sizes = [statSync(packed.tarball).size / (Number(download) * 1e6), unpacked / (Number(onDisk) * 1e6)];
    for (const ofNamed of sizes) expect(Math.abs(ofNamed - 1)).toBeLessThan(0.05);
  });

  it('The published package has its modules and types in pairs', () => {
    const names = (ending: string) =>
      packed.files.filter((file) => file.endsWith(ending)).map((file) => file.slice(0, -ending.length));
    expect(names('.d.ts').sort()).toEqual(names('.js').sort());
  });

  it('Each module and its types have a map to a source that is in the package', () => {
    const mapped = packed.files.filter((file) => /\.(js|d\.ts)$/.test(file));
    for (const file of mapped) {
      const { sources } = readMap(file);
      const paths = sources.map((source) => join(dirname(file), source));
      expect([file, paths]).toEqual([file, [file.replace(/^dist/, 'src').replace(/(\.d\.ts|\.js)$/, '.ts')]]);
      expect(packed.files).toEqual(expect.arrayContaining(paths));
    }
  });

  it.each([
    ['lockOn', 'dist/express/middleware.d.ts', 'export function lockOn'],
    ['createLocks', 'dist/core/runtime/locks.d.ts', 'export function createLocks'],
  ])('"Go to definition" on %s ends at its source', (name, file, line) => {
    const types = readFileSync(join(packed.unpacked, file), 'utf8').split('\n');
    const at = types.findIndex((each) => each.includes(`function ${name}`));
    const entry = new SourceMap(readMap(file)).findEntry(at, types[at]!.indexOf(name));
    if (!('originalSource' in entry)) throw new Error(`Expected ${file} to map ${name}`);
    const source = readFileSync(join(packed.unpacked, dirname(file), entry.originalSource), 'utf8');
    expect(source.split('\n')[entry.originalLine]).toContain(line);
  });

  function readMap(file: string): SourceMapPayload {
    return JSON.parse(readFileSync(join(packed.unpacked, `${file}.map`), 'utf8')) as SourceMapPayload;
  }

  it('The published package passes publint', () => {
    expect(runBinary('publint', ['run', packed.tarball, '--strict'])).toContain('All good!');
  });

  it('The published package has types that every module resolution finds', () => {
    const output = runBinary('attw', [packed.tarball, '--no-definitely-typed', '--format', 'json']);
    const { problems, analysis } = JSON.parse(output) as { problems?: object; analysis: { entrypoints: object } };
    expect(problems ?? {}).toEqual({});
    expect(Object.keys(analysis.entrypoints)).toEqual(
      expect.arrayContaining(Object.keys(manifest.exports as object).filter((path) => path !== './package.json')),
    );
  });

  describe('in its own application', () => {
    let consumer: ReturnType<typeof createConsumer>;
    beforeAll(() => {
      consumer = createConsumer(packed);
      cpSync(join(__dirname, 'consumers'), consumer.folder, { recursive: true });
      cpSync(join(__dirname, 'consumers/frameworks/main.ts'), join(consumer.folder, 'frameworks/main.mts'));
    });
    afterAll(() => consumer?.remove());

    const run = (file: string) =>
      execFileSync('node', [join(consumer.folder, file)], { encoding: 'utf8', timeout: 20_000 });
    const compile = (project: string) => runBinary('tsc', ['-p', join(consumer.folder, project)]);

    it.each([
      ['CommonJS, on each framework', 'frameworks/tsconfig.commonjs.json', 'frameworks/out/main.js'],
      ['ESM, on each framework', 'frameworks', 'frameworks/out/main.mjs'],
      ['a user of node-redis and iovalkey', 'redis-clients', 'redis-clients/out/main.mjs'],
    ])('The published package compiles and guards a route in TypeScript as %s', (_, project, file) => {
      compile(project);
      expect(run(file)).toBe('ok\n');
    });

    it.each(
      matrix<[version: number, peers: string]>([[12, 'node_modules/@nestjs']], () => [
        [11, 'test/nest/nest11/node_modules/@nestjs'],
      ]),
    )('The published package compiles and guards a route on Nest %i, on Express and on Fastify', (_, peers) => {
      const nest = createConsumer(packed, { '@nestjs': peers });
      cpSync(join(__dirname, 'consumers/nest'), nest.folder, { recursive: true });
      runBinary('tsc', ['-p', nest.folder]);
      const main = join(nest.folder, 'out/main.js');
      expect(execFileSync('node', [main], { encoding: 'utf8', timeout: 20_000 })).toBe('ok\n');
      nest.remove();
    });

    // tsx loads Nest, which is ESM, twice: as it is for the program, and as CommonJS for packages that require it.
    it('The published package guards a route on Nest in an ES module that tsx runs', () => {
      const nest = createConsumer(packed, { tsx: 'node_modules/tsx' });
      cpSync(join(__dirname, 'consumers/nest'), nest.folder, { recursive: true });
      const main = ['--import', 'tsx', 'module.mts'];
      expect(execFileSync('node', main, { encoding: 'utf8', timeout: 20_000, cwd: nest.folder })).toBe('ok\n');
      nest.remove();
    });

    it.each([
      ['reenlock/prometheus', 'prom-client', 'collectLockMetrics'],
      ['reenlock/otel', '@opentelemetry/api', 'instrumentLocks'],
    ])('The error of %s names %s as missing, and the rest of the package works without it', (subpath, peer, name) => {
      const code = `const locks = require('reenlock').createLocks();
        try { require('${subpath}').${name}(locks); } catch (error) { console.log(error.code, error.message); }`;
      expect(execFileSync('node', ['-e', code], { encoding: 'utf8', cwd: consumer.folder })).toBe(
        `ERR_LOCK_CONFIG Expected \`${peer}\` to be installed for \`${subpath}\`, got none: npm install ${peer}\n`,
      );
    });

    it('The published package is one to import and require in one process: the same classes, the same async context', () => {
      expect(run('both/main.mjs')).toBe('ok\n');
    });

    it.each([
      ['standard decorators', 'standard'],
      ['experimentalDecorators', 'legacy'],
    ])('The published package compiles `@Locked`, which locks, under %s', (_, mode) => {
      compile(`decorators/tsconfig.${mode}.json`);
      expect(run(`decorators/out-${mode}/service.js`)).toBe('ok\n');
    });
  });
});
