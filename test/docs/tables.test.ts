import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import * as reenlock from 'reenlock';
import {
  createLocks,
  DeadlockError,
  getLock,
  HoldTokenError,
  LockAbortedError,
  LockConfigError,
  type LockError,
  LockKeyError,
  LockLimitError,
  LockLostError,
  LockNotHeldError,
  LockScopeError,
  LockStoreError,
  LocksClosedError,
  LockTimeoutError,
  runInTrace,
} from 'reenlock';
import { closeServer, lockOn, traceContext } from 'reenlock/express';
import { MySqlCas } from 'reenlock/mysql';
import { PostgresStore } from 'reenlock/postgres';
import { CasStore, PostgresCas, QuorumStore, RedisCas, RedisStore } from 'reenlock/redis';
import { anchorOf, headingsOf, plain, readDocument, root, sectionOf } from './markdown.ts';
import {
  acquireOptions,
  codes,
  codesPage,
  errors,
  guardOptions,
  locksOptions,
  names,
  othersOf,
  traceOptions,
} from './tables.ts';

describe('the options tables', () => {
  it.each<[string, string[], () => unknown]>([
    ['createLocks', names(locksOptions), () => createLocks(unknown)],
    ['traceContext', names(traceOptions), () => traceContext(unknown)],
    ['lockOn', [...names(acquireOptions), ...names(guardOptions)], () => lockOn('k', unknown)],
    ['getLock', names(acquireOptions), () => getLock('k', unknown)],
    ['RedisStore', othersOf('RedisStore'), () => new RedisStore(unknown as never)],
    ['PostgresStore', othersOf('PostgresStore'), () => new PostgresStore(unknown as never)],
    ['CasStore', othersOf('CasStore'), () => new CasStore(unknown as never)],
    ['RedisCas', othersOf('RedisCas'), () => new RedisCas(unknown as never)],
    ['PostgresCas', othersOf('PostgresCas'), () => new PostgresCas(unknown as never)],
    ['MySqlCas', othersOf('MySqlCas'), () => new MySqlCas(unknown as never)],
    ['QuorumStore', othersOf('QuorumStore'), () => new QuorumStore(unknown as never)],
    ['runInTrace', othersOf('runInTrace'), () => runInTrace(() => {}, unknown)],
  ])('name all options that %s takes, and no others', async (_, written, call) => {
    expect(written.sort()).toEqual((await knownOptions(call)).sort());
  });

  it('name all options that close and closeServer take, and no others', async () => {
    const locks = createLocks();
    expect(othersOf('close')).toEqual(await knownOptions(() => locks.close(unknown)));
    expect(othersOf('closeServer')).toEqual(await knownOptions(() => closeServer(createServer(), locks, unknown)));
    await locks.close();
  });

  it('give the defaults that are in force', async () => {
    const locks = createLocks();
    const { settings } = locks;
    // The default of `trust` outside production.
    const inForce: Record<string, unknown> = { ...settings, trust: 'internal', store: undefined, instance: undefined };
    for (const row of [...locksOptions, ...traceOptions, ...acquireOptions]) {
      const name = plain(row.name);
      if (name in inForce && inForce[name] !== undefined)
        expect([name, row.default]).toEqual([name, code(inForce[name])]);
    }
    expect(plain(guardOptions.find(({ name }) => plain(name) === 'statusCode')?.default)).toBe(
      String(new LockTimeoutError({ waitedMs: 1, retryAfterMs: 1 }).status),
    );
    await locks.close();
  });
});

describe('the errors table', () => {
  const instances: LockError[] = [
    new LockTimeoutError({ waitedMs: 1, retryAfterMs: 1 }),
    new LockLimitError('m'),
    new LockAbortedError(),
    new DeadlockError({ cycle: [] }),
    new LockLostError('m', { fence: 1 }),
    new LockStoreError('m', { outcome: 'unknown' }),
    new HoldTokenError(),
    new LocksClosedError(),
    new LockKeyError('m'),
    new LockScopeError('m'),
    new LockNotHeldError(),
    new LockConfigError('m'),
  ];

  it('has a row for each error class, with its code and status, and no others', () => {
    const classes = Object.entries(reenlock).filter(([, value]) => isErrorClass(value));
    expect(errors.map((row) => plain(row.class)).sort()).toEqual(classes.map(([name]) => name).sort());
    const rows = instances.map((error) => ({ class: error.name, code: error.code, HTTP: statusOf(error) }));
    expect(errors.map((row) => ({ class: plain(row.class), code: plain(row.code), HTTP: row.HTTP }))).toEqual(rows);
  });

  it('says which messages are sent to clients', () => {
    const sent = instances.filter(({ expose }) => expose).map(({ code }) => code);
    const claimed = instances
      .filter(({ status, code }) => status < 500 || ['ERR_LOCK_LIMIT', 'ERR_LOCK_CLOSED'].includes(code))
      .map(({ code }) => code);
    expect(sent).toEqual(claimed);
  });

  it('leads to a heading for each code', () => {
    for (const row of errors) expect(row.code).toContain(`(#${anchorOf(plain(row.code))})`);
    expect(codes).toEqual(expect.arrayContaining(errors.map((row) => plain(row.code))));
  });

  it('is on the page that each error names as its help', () => {
    const anchors = headingsOf(readDocument(codesPage)).map(anchorOf);
    for (const { help } of instances) {
      const [page, anchor] = help.split('#');
      expect([page, anchors.includes(anchor ?? '')]).toEqual([`node_modules/reenlock/${codesPage}`, true]);
    }
  });
});

it('every warning that the sources emit has its heading, and no other has one', () => {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((f) =>
    f.endsWith('.ts'),
  );
  const emitted = sources.flatMap((file) => readDocument(join('src', file)).match(/'LOCK_[A-Z_]+'/g) ?? []);
  const known = new Set(emitted.map((literal) => literal.slice(1, -1)));
  expect(known.size).toBeGreaterThan(0);
  expect(headingsOf(sectionOf(readDocument(codesPage), 'Warnings')).sort()).toEqual([...known].sort());
});

/** An option that nobody has: the refusal names all that there are. */
const unknown = { noSuchOption: 1 } as object;

async function knownOptions(call: () => unknown): Promise<string[]> {
  const refusal = await (async () => call())().then(
    () => undefined,
    (error: Error) => error.message,
  );
  const [, list = ''] = /to be among (.*), got `noSuchOption`/.exec(refusal ?? '') ?? [];
  return [...list.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
}

function isErrorClass(value: unknown): boolean {
  return typeof value === 'function' && value.prototype instanceof reenlock.LockError;
}

function statusOf({ status, headers }: LockError): string {
  return [String(status), ...Object.keys(headers).map((name) => `\`${name}\``)].join(', ');
}

function code(value: unknown): string {
  return typeof value === 'string' ? `\`'${value}'\`` : `\`${value}\``;
}
