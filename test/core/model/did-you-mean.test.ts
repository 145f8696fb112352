import { Redis } from 'ioredis';
import { Pool } from 'pg';
import * as core from 'reenlock';
import { createLocks, getLock, LockConfigError, lock, runInTrace } from 'reenlock';
import * as express from 'reenlock/express';
import * as fastify from 'reenlock/fastify';
import * as hono from 'reenlock/hono';
import * as koa from 'reenlock/koa';
import * as mysql from 'reenlock/mysql';
import * as nest from 'reenlock/nest';
import * as node from 'reenlock/node';
import * as otel from 'reenlock/otel';
import * as postgres from 'reenlock/postgres';
import { PostgresStore } from 'reenlock/postgres';
import * as prometheus from 'reenlock/prometheus';
import * as redis from 'reenlock/redis';
import { QuorumStore, RedisCas, RedisStore } from 'reenlock/redis';
import * as testing from 'reenlock/testing';
import * as contract from 'reenlock/testing/contract';

describe('Options that have another name', () => {
  const locks = createLocks();
  afterAll(() => locks.close());

  it.each([
    { name: 'ttl', meant: 'leaseMs' },
    { name: 'timeout', meant: 'waitMs' },
    { name: 'retryCount', meant: 'waitMs' },
    { name: 'automaticExtensionThreshold', meant: 'renew' },
    { name: 'owner', meant: 'reentrant' },
  ])('The option $name is refused in favour of $meant, by createLocks and by an acquire', async ({ name, meant }) => {
    const words = `got \`${name}\`. Did you mean \`${meant}\`?`;
    expect(() => createLocks({ [name]: 5 })).toThrow(words);
    expect(() => getLock('key', { [name]: 5 })).toThrow(words);
    await expect(runInTrace(() => lock.acquire('key', { [name]: 5 }), { locks })).rejects.toThrow(words);
  });

  it('An option is proposed only where there is one of that name, and nothing for a name that nobody uses', () => {
    const refused = (options: object) => {
      expect(() => createLocks({ store: new QuorumStore(options as never) })).toThrow(/got `\w+`$/);
    };
    refused({ ttl: 5 });
    refused({ toString: 5 });
    expect(() => createLocks({ toString: 5 } as object)).toThrow(/got `toString`$/);
  });

  it.each([
    { name: 'client', meant: 'createLocks({ store: new RedisStore({ client }) })' },
    { name: 'prefix', meant: "createLocks({ store: new RedisStore({ client, prefix: '…' }) })" },
    { name: 'pool', meant: 'createLocks({ store: new PostgresStore({ pool }) })' },
  ])('createLocks says of $name which store has that option', ({ name, meant }) => {
    expect(() => createLocks({ [name]: {} })).toThrow(`got \`${name}\`. Did you mean \`${meant}\`?`);
  });
});

describe('The value of an option instead of the options', () => {
  const client = new Redis({ lazyConnect: true });
  const pool = new Pool();

  it.each<[string, () => unknown]>([
    ['new RedisStore({ client })', () => new RedisStore(client as never)],
    ['new RedisCas({ client })', () => new RedisCas(client as never)],
    ['new QuorumStore({ stores })', () => new QuorumStore([1, 2, 3].map(() => new RedisStore({ client })) as never)],
    ['createLocks({ store })', () => createLocks(new RedisStore({ client }) as never)],
    ['new PostgresStore({ pool })', () => new PostgresStore(pool as never)],
  ])('The message proposes `%s`', (meant, build) => {
    expect(build).toThrow(LockConfigError);
    expect(build).toThrow(`. Did you mean \`${meant}\`?`);
  });
});

describe('The routine of a lock', () => {
  const locks = createLocks();
  afterAll(() => locks.close());
  const routine = (): void => {};

  it.each<[string, () => Promise<unknown>]>([
    ['lock.run', () => lock.run('key', { leaseMs: 5_000 } as never, routine as never)],
    ['lock.runAll', () => lock.runAll(['key'], 5_000 as never, routine as never)],
    ['getLock().run', () => getLock('key').run({ leaseMs: 5_000 } as never, routine as never)],
  ])('A routine behind the options of %s, as in other libraries, is refused with the right order', async (_, call) => {
    await expect(runInTrace(call, { locks })).rejects.toThrow(/to be a function, with the options after it, got /);
  });
});

describe('A name that another subpath has', () => {
  const subpaths = {
    'reenlock/redis': redis,
    'reenlock/postgres': postgres,
    'reenlock/mysql': mysql,
    'reenlock/express': express,
    'reenlock/koa': koa,
    'reenlock/hono': hono,
    'reenlock/fastify': fastify,
    'reenlock/node': node,
    'reenlock/nest': nest,
    'reenlock/prometheus': prometheus,
    'reenlock/otel': otel,
    'reenlock/testing': testing,
    'reenlock/testing/contract': contract,
  };
  const perFramework = Object.keys(node);
  /** Never called: a name that threw would look like a value that is none. */
  const notCalled = ['LOCKS', 'QuorumFailure'];
  const names = new Map(
    Object.entries(subpaths).flatMap(([subpath, module]) =>
      Object.keys(module).map((name) => [name, subpath] as const),
    ),
  );
  // `CasStore` is in two subpaths: the first is named.
  for (const name of [...perFramework, 'CasStore'])
    names.set(name, name === 'CasStore' ? 'reenlock/redis' : 'reenlock/express');

  it.each([...names].filter(([name]) => !notCalled.includes(name)))(
    'The error of %s of `reenlock` names %s',
    (name, subpath) => {
      const misplaced = (core as unknown as Record<string, new (options: object) => unknown>)[name];
      expect(misplaced).toBeDefined();
      expect(() => new misplaced!({})).toThrow(LockConfigError);
      expect(() => Reflect.apply(misplaced!, undefined, [])).toThrow(
        `Expected \`${name}\` to be imported from \`${subpath}\``,
      );
    },
  );
});
