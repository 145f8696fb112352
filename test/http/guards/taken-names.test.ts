import { createServer, type RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { createLocks, type Locks } from 'reenlock';
import * as forExpress from 'reenlock/express';
import * as forFastify from 'reenlock/fastify';
import * as forHono from 'reenlock/hono';
import * as forKoa from 'reenlock/koa';
import * as forNode from 'reenlock/node';
import request from 'supertest';
import { recordWarnings } from '../../support/warnings.ts';

const warnings = recordWarnings();

/** What handlers find under both names. */
type Seen = [lock: unknown, keys: unknown];
type Names = Record<string, unknown>;

const seenOn = ({ lock, locks }: Names): Seen => [
  (lock as { key?: string } | undefined)?.key ?? lock,
  locks instanceof Map ? [...locks.keys()] : locks,
];

/** An application that puts these values on its requests, and then guards a route twice. */
const applications: Readonly<
  Record<
    string,
    (options: { locks: Locks; holdName?: string }, own: Names, seen: (names: Names) => void) => RequestListener
  >
> = {
  Express(options, own, seen) {
    const app = express().use(forExpress.traceContext(options));
    app.use((req, _res, next) => {
      Object.assign(req, own);
      next();
    });
    return app.get('/', forExpress.lockOn('a'), forExpress.lockOn('b'), (req, res) => {
      seen(req as unknown as Names);
      res.end();
    });
  },
  Koa(options, own, seen) {
    const app = new Koa().use(forKoa.traceContext(options));
    app.use((ctx, next) => {
      Object.assign(ctx.state, own);
      return next();
    });
    app.use(forKoa.lockOn('a')).use(forKoa.lockOn('b'));
    return app
      .use((ctx) => {
        seen(ctx.state);
        ctx.body = '';
      })
      .callback();
  },
  Hono(options, own, seen) {
    const app = new Hono().use(forHono.traceContext(options));
    app.use((c, next) => {
      for (const [name, value] of Object.entries(own)) c.set(name as never, value as never);
      return next();
    });
    app.get('/', forHono.lockOn('a'), forHono.lockOn('b'), (c) => {
      seen(c.var as Names);
      return c.text('');
    });
    return getRequestListener(app.fetch, { overrideGlobalObjects: false });
  },
  Fastify(options, own, seen) {
    const app = fastify();
    for (const [name, value] of Object.entries(own)) {
      app.decorateRequest(name, { getter: () => value } as never);
    }
    app.register(forFastify.traceContext(options));
    app.get('/', { preHandler: [forFastify.lockOn('a'), forFastify.lockOn('b')] }, async (req) => {
      seen(req as unknown as Names);
      return '';
    });
    return async (req, res) => {
      await app.ready();
      app.routing(req, res);
    };
  },
  'plain Node'(options, own, seen) {
    const [trace, first, second] = [forNode.traceContext(options), forNode.lockOn('a'), forNode.lockOn('b')];
    return (req, res) => {
      Object.assign(req, own);
      trace(req, res, () =>
        first(req, res, () =>
          second(req, res, () => {
            seen(req as unknown as Names);
            res.end();
          }),
        ),
      );
    };
  },
};

it('Two applications of one process may choose different names: neither shows holds under those of the other', async () => {
  const locks = createLocks();
  const seen: unknown[] = [];
  const see = ({ lock, locks, hold, holds }: Names): number =>
    seen.push([...seenOn({ lock, locks }), ...seenOn({ lock: hold, locks: holds })]);
  for (const options of [{ locks, holdName: 'hold' }, { locks }]) {
    await request(createServer(applications.Express?.(options, {}, see)))
      .get('/')
      .expect(200);
  }
  expect(seen).toEqual([
    [undefined, undefined, 'b', ['a', 'b']],
    ['b', ['a', 'b'], undefined, undefined],
  ]);
  await locks.close();
});

it('A request of plain Node whose own `lock` can’t be replaced gets an error, and no handler runs', async () => {
  const locks = createLocks();
  const [trace, guard] = [forNode.traceContext({ locks }), forNode.lockOn('k')];
  const passed: unknown[] = [];
  const server = createServer((req, res) => {
    Object.defineProperty(req, 'lock', { get: () => undefined });
    trace(req, res, () =>
      guard(req, res, (...args) => {
        passed.push(args);
        res.writeHead(500).end();
      }),
    );
  });
  await request(server).get('/').expect(500);
  expect(passed).toEqual([[expect.any(TypeError)]]);
  expect((await locks.inspect('k')).holds).toEqual([]);
  await locks.close();
});

it.each([1, '', 'my-lock'])('The `holdName` %p is refused when `traceContext` is built', (holdName) => {
  expect(() => forExpress.traceContext({ holdName: holdName as string })).toThrow(
    /^Expected `holdName` to be the name of a property, got /,
  );
});

describe.each(Object.entries(applications))('The names `lock` and `locks` on the requests of %s', (_, create) => {
  it.each<[string, Names, Seen, string[]]>([
    ['nothing', {}, ['b', ['a', 'b']], []],
    ['its own `lock`', { lock: 'door' }, ['door', ['a', 'b']], ['LOCK_NAME_TAKEN']],
    ['its own `locks`', { locks: ['door'] }, ['b', ['door']], ['LOCK_NAME_TAKEN']],
    ['both', { lock: false, locks: new Map([['door', 1]]) }, [false, ['door']], ['LOCK_NAME_TAKEN']],
  ])('An application that has %s there keeps it, with one warning', async (_what, own, expected, codes) => {
    const locks = createLocks();
    let seen: Seen | undefined;
    const server = createServer(
      create({ locks }, own, (names) => {
        seen = seenOn(names);
      }),
    );
    await request(server).get('/').expect(200);
    expect(seen).toEqual(expected);
    expect(warnings().map(({ code }) => code)).toEqual(codes);
    await locks.close();
  });

  it('A `holdName` moves the holds to names that the application has chosen, alongside its own, without a warning', async () => {
    const locks = createLocks();
    const own = { lock: 'door', locks: ['door'] };
    const seen: Seen[] = [];
    const server = createServer(
      create({ locks, holdName: 'hold' }, own, (names) => {
        seen.push(seenOn(names), seenOn({ lock: names.hold, locks: names.holds }));
      }),
    );
    await request(server).get('/').expect(200);
    expect(seen).toEqual([
      ['door', ['door']],
      ['b', ['a', 'b']],
    ]);
    expect(warnings()).toEqual([]);
    await locks.close();
  });
});
