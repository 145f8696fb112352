import { EventEmitter } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import Koa, { type Middleware } from 'koa';
import { createLocks, LockConfigError, LockScopeError, LockTimeoutError } from 'reenlock';
import * as ofExpress from 'reenlock/express';
import * as ofKoa from 'reenlock/koa';
import * as ofNode from 'reenlock/node';
import request from 'supertest';
import { expresses } from '../../support/http/native.ts';

const locks = createLocks();
afterAll(() => locks.close());

const forExpress = { traceContext: ofExpress.traceContext({ locks }), lockOn: ofExpress.lockOn('k') };
const forKoa = { traceContext: ofKoa.traceContext({ locks }), lockOn: ofKoa.lockOn('k') };

/** The errors of one request in an application that has a middleware. */
type ErrorsOf = (middleware: unknown) => Promise<unknown[]>;

const hosts: [name: string, kind: 'express' | 'koa', errorsOf: ErrorsOf][] = [
  ...expresses.map(([name, make]): (typeof hosts)[0] => [
    name,
    'express',
    async (middleware) => {
      const errors: unknown[] = [];
      const tell: ErrorRequestHandler = (error, _req, res, _next) => {
        errors.push(error);
        res.status(500).end();
      };
      const app = make().use(middleware as RequestHandler, (_req, res) => void res.send('in'));
      await request(app.use(tell)).get('/').expect(500);
      return errors;
    },
  ]),
  [
    'Koa 3',
    'koa',
    async (middleware) => {
      const errors: unknown[] = [];
      const app = new Koa().on('error', (error) => errors.push(error));
      app.use(middleware as Middleware).use((ctx) => {
        ctx.body = 'in';
      });
      await request(app.callback()).get('/').expect(500);
      return errors;
    },
  ],
];

describe.each(hosts)('Wrong middleware in %s', (_, kind, errorsOf) => {
  const [other, parameters, caller] =
    kind === 'koa' ? [forExpress, '(req, res, next)', 'Koa'] : [forKoa, '(ctx, next)', 'Express'];

  it.each(['traceContext', 'lockOn'] as const)(
    'The %s of the other framework is an error that names the import to use',
    async (name) => {
      expect(await errorsOf(other[name])).toEqual([
        new LockConfigError(
          `Expected a middleware to be called with \`${parameters}\`, got a call by ${caller}: import it from \`reenlock/${kind}\` instead`,
        ),
      ]);
    },
  );

  it.each([
    ['traceContext', 'traceContext()'],
    ['lockOn', 'lockOn(key)'],
  ] as const)(
    'A %s that is mounted without being called fails each request with an error that names it',
    async (name, call) => {
      expect(await errorsOf((kind === 'koa' ? ofKoa : ofExpress)[name])).toEqual([
        new LockConfigError(
          `Expected \`${call}\` to be mounted, got \`${name}\` itself, which was called with a request: call it first`,
        ),
      ]);
    },
  );
});

describe.each(['traceContext', 'lockOn'] as const)('%s of Express or Koa in another framework', (name) => {
  /** The error that a call throws, or passes to `next`. */
  const errorOf = (middleware: unknown, args: unknown[]): unknown => {
    try {
      Reflect.apply(middleware as () => void, undefined, args);
      return passed.pop();
    } catch (error) {
      return error;
    }
  };
  const passed: unknown[] = [];
  const next = (error: unknown): void => void passed.push(error);
  const raw = new IncomingMessage(new Socket());
  const response = new ServerResponse(raw);
  const hono = {
    req: { raw: new Request('http://localhost/') },
    get res() {
      return new Response();
    },
  };

  it.each<[string, string, unknown[]]>([
    ['a Fastify hook', 'Fastify', [{ raw }, { raw: response }, next]],
    ['an async Fastify hook', 'Fastify', [{ raw }, { raw: response }]],
    ['a Fastify plugin', 'Fastify', [{ addHook: next }, {}, next]],
    ['a Hono middleware', 'Hono', [hono, next]],
  ])('A middleware in another framework says what to import instead when it is called as %s', (_, caller, args) => {
    for (const [parameters, middleware] of [
      ['(req, res, next)', forExpress[name]],
      ['(ctx, next)', forKoa[name]],
    ] as const) {
      expect(errorOf(middleware, args)).toEqual(
        new LockConfigError(
          `Expected a middleware to be called with \`${parameters}\`, got a call by ${caller}: import it from \`reenlock/${caller.toLowerCase()}\` instead`,
        ),
      );
    }
  });
});

it('The error of a middleware of Koa that plain Node calls names the import to use', () => {
  const req = new IncomingMessage(new Socket());
  for (const middleware of [forKoa.traceContext, forKoa.lockOn]) {
    expect(() => Reflect.apply(middleware, undefined, [req, new ServerResponse(req), () => {}])).toThrow(
      new LockConfigError(
        'Expected a middleware to be called with `(ctx, next)`, got a call by plain Node: import it from `reenlock/node` instead',
      ),
    );
  }
});

describe.each(['traceContext', 'lockOn'] as const)('%s for a WebSocket', (name) => {
  const req = new IncomingMessage(new Socket());
  const next = jest.fn();

  // As koa-websocket makes its context, with the request alone.
  it('A middleware for a WebSocket is an error in Koa that names what to do', () => {
    const ctx = Object.assign(new Koa().createContext(req, new ServerResponse(req)), { res: undefined });
    expect(() => forKoa[name](ctx as unknown as Koa.Context, next)).toThrow(
      new LockConfigError(
        'Expected a middleware to be called with `(ctx, next)` and a response of `node:http`, got `undefined` (undefined) as `ctx.res`: for a WebSocket, lock in `runInTrace`',
      ),
    );
    expect(next).not.toHaveBeenCalled();
  });

  // The second as express-ws calls it, with the socket in the place of the request.
  it.each([
    ['`undefined` (undefined)', req, undefined],
    ['`null` (null)', req, null],
    ['a value of type object', new EventEmitter(), req],
  ])(
    'A middleware for a WebSocket is an error in Express that names what to do, if the response is %s',
    (got, first, second) => {
      const passed: unknown[] = [];
      forExpress[name](first as IncomingMessage, second as unknown as ServerResponse, (error) => passed.push(error));
      expect(passed).toEqual([
        new LockConfigError(
          `Expected a middleware to be called with \`(req, res, next)\` and a response of \`node:http\`, got ${got} as \`res\`: for a WebSocket, lock in \`runInTrace\``,
        ),
      ]);
    },
  );
});

/** As Engine.IO passes it to middleware for the handshake of a WebSocket: some methods for headers, and events or not. */
function handshake(hasEvents: boolean): ServerResponse {
  const headers = new Map<string, unknown>();
  return Object.assign(hasEvents ? new EventEmitter() : {}, {
    setHeader: (name: string, value: unknown) => void headers.set(name.toLowerCase(), value),
    getHeader: (name: string) => headers.get(name.toLowerCase()),
    removeHeader: (name: string) => void headers.delete(name.toLowerCase()),
    write() {},
    writeHead() {},
    end() {},
  }) as unknown as ServerResponse;
}

describe.each([
  ['reenlock/express', ofExpress],
  ['reenlock/node', ofNode],
] as const)('%s for the handshake of Engine.IO', (_, { traceContext, lockOn }) => {
  const req = Object.assign(new IncomingMessage(new Socket()), { headers: { 'x-trace-id': 'a' } });
  const call = (hasEvents: boolean, middleware: ReturnType<typeof ofNode.lockOn>): Promise<unknown> =>
    new Promise((resolve) => middleware(req, handshake(hasEvents), resolve));

  it.each([true, false])(
    '`traceContext` lets the handshake of a WebSocket pass, without a scope (with events: %s)',
    (hasEvents) => {
      const next = jest.fn();
      traceContext({ locks })(req, handshake(hasEvents), next);
      expect(next.mock.calls).toEqual([[]]);
    },
  );

  it.each([true, false])(
    '`lockOn` refuses the handshake of a WebSocket with an error for `next` (with events: %s)',
    async (hasEvents) => {
      expect(await call(hasEvents, lockOn('k'))).toBeInstanceOf(LockScopeError);
    },
  );

  it('`traceContext` passes an error of its options to `next`, because plain Node would end the process', async () => {
    const trust = (): boolean => {
      throw new Error('of the predicate');
    };
    const res = new ServerResponse(req);
    const passed = new Promise((resolve) => traceContext({ locks, trust })(req, res, resolve));
    expect(await passed).toEqual(new Error('of the predicate'));
  });
});

describe('sendProblem instead of error middleware', () => {
  const own = new Error('own trouble');
  const refused = new LockTimeoutError({ key: 'k', waitedMs: 5, retryAfterMs: 2_000 });

  it('sendProblem instead of error middleware sends the headers of a lock’s error, and passes other errors on to Express', async () => {
    for (const [error, expected] of [
      [own, { status: 500, text: expect.stringContaining('own trouble') }],
      [
        refused,
        { status: 423, headers: { 'retry-after': '2' }, text: expect.stringContaining('"detail":"The lock was') },
      ],
    ] as const) {
      const app = express();
      app.use((_req, _res, next) => next(error));
      app.use(ofExpress.sendProblem as ErrorRequestHandler);
      expect(await request(app).get('/')).toMatchObject(expected);
    }
  });

  it('sendProblem instead of error middleware sends the headers of a lock’s error, and passes other errors on to Koa', async () => {
    for (const [error, expected] of [
      [own, { status: 500 }],
      [refused, { status: 423, headers: { 'retry-after': '2' } }],
    ] as const) {
      const app = new Koa();
      const errors: Error[] = [];
      app.on('error', (thrown) => errors.push(thrown));
      app.use((ctx) => ofKoa.sendProblem(error as LockTimeoutError, ctx));
      expect(await request(app.callback()).get('/')).toMatchObject(expected);
      expect(errors).toEqual(error === own ? [own] : []);
    }
  });
});
