import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as core from 'reenlock';
import * as express from 'reenlock/express';
import * as koa from 'reenlock/koa';
import * as redis from 'reenlock/redis';
import { root } from './packed.ts';

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown>;

describe('the package', () => {
  it.each<[string, object, string]>([
    [
      'reenlock',
      core,
      `DeadlockError LockAbortedError LockConfigError LockError LockKeyError LockLimitError LockLostError LockNotHeldError
       LockScopeError LockStoreError LockTimeoutError Locked LocksClosedError MemoryStore configureLocks createLocks
       currentTrace getLock isLockError lock runInTrace traceHeaders`,
    ],
    ['reenlock/redis', redis, 'CasStore PostgresCas QuorumFailure QuorumStore RedisCas RedisStore postgresCasTable'],
    ['reenlock/express', express, 'closeServer lockOn sendProblem traceContext'],
    ['reenlock/koa', koa, 'closeServer lockOn sendProblem traceContext'],
  ])('exports these names from %s, and no others', (_, exported, names) => {
    expect(Object.keys(exported).sort()).toEqual(names.split(/\s+/));
  });

  it('can be imported by these paths, and by no others', () => {
    expect(Object.keys(manifest.exports as object)).toEqual(['.', './redis', './express', './koa', './package.json']);
  });

  it('names the same types to a compiler that knows no `exports`', () => {
    const { '.': main, './package.json': _, ...others } = manifest.exports as Record<string, { types: string }>;
    expect(manifest.types).toBe(main?.types);
    const named = Object.entries(others).map(([path, { types }]) => [path.slice('./'.length), [types]]);
    expect(manifest.typesVersions).toEqual({ '*': Object.fromEntries(named) });
  });

  it('has nothing else in it than the build and the documents', () => {
    expect(manifest.files).toEqual(['dist', 'docs', 'CHANGELOG.md', 'SECURITY.md']);
  });

  it('says to bundlers that to import it has no effect, and has none that others could see', () => {
    expect(manifest.sideEffects).toBe(false);
    const shared = Object.getOwnPropertySymbols(globalThis).map((symbol) => Symbol.keyFor(symbol) ?? '');
    expect(shared.filter((name) => name.startsWith('reenlock'))).toEqual([]);
  });

  it('needs cls-rtracer beside it, may have a client and a framework, and brings nothing along', () => {
    expect(manifest.peerDependencies).toEqual({
      'cls-rtracer': '^2.6.4',
      express: '^4.18 || ^5',
      ioredis: '^5.4 || ^6',
      koa: '^2.15 || ^3',
    });
    const optional = { optional: true };
    expect(manifest.peerDependenciesMeta).toEqual({ express: optional, ioredis: optional, koa: optional });
    expect(manifest).not.toHaveProperty('dependencies');
    expect(manifest).not.toHaveProperty('optionalDependencies');
  });

  it('runs on the Node that the README names', () => {
    const { node } = manifest.engines as { node: string };
    const [, named] = /with Node (\S+) or newer/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
    expect(node).toBe(`>=${named}`);
  });
});
