import type { ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import {
  type ArgumentsHost,
  Body,
  type CanActivate,
  Catch,
  Controller,
  type DynamicModule,
  type ExceptionFilter,
  Get,
  type INestApplication,
  Inject,
  type LoggerService,
  type MiddlewareConsumer,
  type OnApplicationShutdown,
  Post,
  Req,
  Res,
  Sse,
  StreamableFile,
  type Type,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { type AbstractHttpAdapter, ExternalContextCreator, HttpAdapterHost, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { RequestHandler } from 'express';
import { getLock, LockError, type Locks, lock, runInTrace } from 'reenlock';
import { lockOn } from 'reenlock/express';
import { LOCKS, type LockedRequest, LockOn, LocksModule, traceContext } from 'reenlock/nest';
import { createTestLocks, type TestLocks } from 'reenlock/testing';
import { concat, defer, from, of } from 'rxjs';
import { type Gate, gate } from '../support/gate.ts';
import { Http2Client } from '../support/http/http2-client.ts';
import { pathOf } from '../support/path-of.ts';
import { until } from '../support/until.ts';
import { recordWarnings } from '../support/warnings.ts';

let locks: TestLocks;
let app: INestApplication | undefined;
let logged: unknown[];
let inside: Gate;
let work: Gate;
const warnings = recordWarnings();

beforeEach(() => {
  locks = createTestLocks();
  logged = [];
  [inside, work] = [gate(), gate()];
});
afterEach(async () => {
  work.open();
  await locks.end();
  await app?.close();
  app = undefined;
});

const logger: LoggerService = {
  log: () => {},
  warn: (message: unknown) => void logged.push(message),
  error: (message: unknown) => void logged.push(message),
};

async function lockInMiddleware(_req: unknown, _res: unknown, next: () => void): Promise<void> {
  await lock.run('k', () => next(), { waitMs: 0 });
}

async function holders(key: string): Promise<number> {
  return (await locks.inspect(key)).holds.length;
}

describe.each<readonly [string, () => AbstractHttpAdapter]>([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('Nest on %s', (_, createAdapter) => {
  /** Starts an application with these controllers; returns its address. */
  async function start(
    controllers: Type[],
    module = LocksModule.forRoot({ locks, trust: 'all' }),
    ...above: RequestHandler[]
  ): Promise<string> {
    class Root {
      configure(consumer: MiddlewareConsumer): void {
        consumer.apply(lockInMiddleware).forRoutes('middleware');
      }
    }
    const root = { module: Root, imports: [module], controllers };
    app = await NestFactory.create(root, createAdapter(), { logger, abortOnError: false });
    if (above.length > 0) for (const each of [traceContext({ locks, trust: 'all' }), ...above]) app.use(each);
    await app.listen(0, '127.0.0.1');
    return app.getUrl();
  }

  it('A guard takes its key from a body that Nest has parsed, and leaves its hold on the request', async () => {
    @Controller('orders')
    class Orders {
      @Post(':shop')
      @LockOn(({ params, body }) => [params.shop, (body as { id: string }).id])
      async ship(@Req() { lock: newest, locks: all }: LockedRequest, @Body() { id }: { id: string }): Promise<object> {
        return {
          newest: newest?.key,
          all: [...(all?.keys() ?? [])],
          owner: await getLock(id).run(pathOf),
        };
      }
    }
    const response = await fetch(`${await start([Orders])}/orders/north`, {
      method: 'POST',
      body: JSON.stringify({ id: '42' }),
      headers: { 'Content-Type': 'application/json', 'X-Trace-Id': 'mine' },
    });
    expect([response.status, response.headers.get('x-trace-id')]).toEqual([201, 'mine']);
    expect(await response.json()).toEqual({ newest: '42, north', all: ['42', 'north'], owner: 'mine' });
  });

  it('A guard on a controller is for all of its routes, and runs before those of the routes', async () => {
    @Controller()
    @LockOn('outer')
    class Guarded {
      @Get('one')
      one(@Req() { locks: all }: LockedRequest): string[] {
        return [...(all?.keys() ?? [])];
      }

      @Get('two')
      @LockOn('inner')
      two(@Req() { locks: all }: LockedRequest): string[] {
        return [...(all?.keys() ?? [])];
      }
    }
    const url = await start([Guarded]);
    expect(await (await fetch(`${url}/one`)).json()).toEqual(['outer']);
    expect(await (await fetch(`${url}/two`)).json()).toEqual(['outer', 'inner']);
  });

  it('A guard on a controller runs the route that overrides an inherited one, and other methods also after the request', async () => {
    let late: Promise<string> | undefined;
    class Inherited {
      @Get()
      ship(): string {
        return 'inherited';
      }
    }
    @Controller()
    @LockOn('k')
    class Orders extends Inherited {
      @Get()
      override ship(): string {
        late = work.then(() => this.note());
        return this.own;
      }

      get own(): string {
        return 'own';
      }

      note(): string {
        return 'noted';
      }
    }
    expect(await (await fetch(await start([Orders]))).text()).toBe('own');
    await until(async () => (await holders('k')) === 0);
    work.open();
    expect(await late).toBe('noted');
  });

  it('A guard below one of Express’s own in the same process shows its holds without a warning', async () => {
    @Controller()
    class Guarded {
      @Get()
      @LockOn('inner')
      one(@Req() { lock: newest, locks: all }: LockedRequest): unknown {
        return [newest?.key, ...(all?.keys() ?? [])];
      }
    }
    const url = await start([Guarded], undefined, lockOn('outer') as unknown as RequestHandler);
    expect(await (await fetch(url)).json()).toEqual(expect.arrayContaining(['inner']));
    expect(warnings()).toEqual([]);
  });

  it('A request that a guard of Nest turns away does not wait for the lock', async () => {
    class Nobody implements CanActivate {
      canActivate(): boolean {
        return false;
      }
    }
    @Controller()
    class Closed {
      @Get()
      @LockOn('k')
      @UseGuards(Nobody)
      get(): string {
        return 'in';
      }
    }
    const url = await start([Closed]);
    await locks.holdAs('other', 'k');
    expect((await fetch(url)).status).toBe(403);
  });

  it.each<[string, () => unknown, string]>([
    ['a promise', async () => work.then(() => ({ done: true })), '{"done":true}'],
    ['an Observable', () => defer(() => from(work.then(() => 'done'))), 'done'],
    [
      'a stream',
      () =>
        new StreamableFile(
          Readable.from(
            (async function* () {
              yield 'begun ';
              await work;
              yield 'done';
            })(),
          ),
        ),
      'begun done',
    ],
  ])('The lock is held until the result of a handler is sent, if it is %s', async (_, result, text) => {
    @Controller()
    class Results {
      @Get()
      @LockOn('k')
      get(): unknown {
        inside.open();
        return result();
      }
    }
    const url = await start([Results]);
    const first = fetch(url);
    await inside;
    const second = fetch(url);
    await locks.whenWaiting('k');
    work.open();
    expect(await (await first).text()).toBe(text);
    expect((await second).status).toBe(200);
  });

  it('The lock is held until a stream of server-sent events has ended', async () => {
    @Controller()
    class Events {
      @Sse()
      @LockOn('k')
      events(): unknown {
        return concat(
          of({ data: 'one' }),
          defer(() => {
            inside.open();
            return from(work.then(() => ({ data: 'two' })));
          }),
        );
      }
    }
    const response = fetch(await start([Events]));
    await inside;
    expect(await holders('k')).toBe(1);
    work.open();
    expect(await (await response).text()).toMatch(/data: one[\s\S]*data: two/);
    await until(
      () => holders('k'),
      (count) => count === 0,
    );
    expect(warnings().map(({ code }) => code)).toEqual(['LOCK_EVENT_STREAM']);
  });

  describe('A refusal', () => {
    @Catch(LockError)
    class Own implements ExceptionFilter<LockError> {
      catch({ code }: LockError, host: ArgumentsHost): void {
        const { httpAdapter } = (app as INestApplication).get(HttpAdapterHost);
        httpAdapter.reply(host.getArgByIndex(1), { own: code }, 418);
      }
    }

    @Controller()
    class Refusing {
      @Get('guarded')
      @LockOn('k', { waitMs: 0, statusCode: 409 })
      guarded(): string {
        return 'in';
      }

      @Get('inside')
      inside(): Promise<string> {
        return getLock('k').run(() => 'in', { waitMs: 0 });
      }

      @Get('encoded')
      encoded(@Res({ passthrough: true }) response: { header(name: string, value: string): unknown }): Promise<string> {
        response.header('Content-Encoding', 'gzip');
        return getLock('k').run(() => 'in', { waitMs: 0 });
      }

      @Get('part')
      @LockOn('guard')
      async part(@Res() response: ServerResponse & { raw?: ServerResponse }): Promise<void> {
        (response.raw ?? response).write('part');
        await getLock('k').run(() => 'in', { waitMs: 0 });
      }

      @Get('own')
      @LockOn('k', { waitMs: 0, handler: (error) => ({ own: error.code }) })
      own(): string {
        return 'in';
      }

      @Sse('events')
      @LockOn('k', { waitMs: 0 })
      events(): unknown {
        return of({ data: 'in' });
      }

      @Get('filtered')
      @LockOn('k', { waitMs: 0 })
      @UseFilters(Own)
      filtered(): string {
        return 'in';
      }
    }

    it.each([
      ['of a guard', '/guarded', 409],
      ['of a lock in a service', '/inside', 423],
      ['of a lock in middleware', '/middleware', 423],
      ['after headers of another body', '/encoded', 423],
      ['of an event stream', '/events', 423],
    ])('%s is a problem document with Retry-After, and no error in the log', async (_, path, status) => {
      await locks.holdAs('other', 'k');
      const response = await fetch((await start([Refusing])) + path);
      expect(response.status).toBe(status);
      expect(response.headers.get('content-type')).toBe('application/problem+json');
      expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(await response.json()).toMatchObject({ status, code: 'ERR_LOCK_TIMEOUT' });
      expect(logged).toEqual([]);
    });

    it('after a part of the response ends the response, and with it the lock of the guard', async () => {
      await locks.holdAs('other', 'k');
      const response = await fetch(`${await start([Refusing])}/part`);
      expect([response.status, await response.text()]).toEqual([200, 'part']);
      await until(async () => (await holders('guard')) === 0);
    });

    it('by a store that has failed is logged, and its message is hidden from the client', async () => {
      locks.failNext('acquire', new Error('redis://secret'));
      const response = await fetch(`${await start([Refusing])}/guarded`);
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
      expect(logged).toEqual([expect.objectContaining({ code: 'ERR_LOCK_STORE' })]);
      expect(await response.text()).not.toMatch(/secret|store/);
    });

    it('is the result of the guard’s own handler, if it has one', async () => {
      await locks.holdAs('other', 'k');
      const response = await fetch(`${await start([Refusing])}/own`);
      expect(await response.json()).toEqual({ own: 'ERR_LOCK_TIMEOUT' });
    });

    it('goes to a filter of its route before that of the module', async () => {
      await locks.holdAs('other', 'k');
      const response = await fetch(`${await start([Refusing])}/filtered`);
      expect([response.status, await response.json()]).toEqual([418, { own: 'ERR_LOCK_TIMEOUT' }]);
    });
  });

  it('The module of an application takes its options from a factory, and gives the locks to its providers', async () => {
    @Controller()
    class Injected {
      readonly #locks: Locks;

      constructor(@Inject(LOCKS) injected: Locks) {
        this.#locks = injected;
      }

      @Get()
      get(): boolean {
        return this.#locks === locks;
      }
    }
    const module = LocksModule.forRootAsync({
      imports: [{ module: class Config {}, providers: [{ provide: 'TRUST', useValue: 'all' }], exports: ['TRUST'] }],
      inject: ['TRUST'],
      useFactory: (trust: 'all') => ({ locks, trust }),
    });
    const response = await fetch(await start([Injected], module), { headers: { 'X-Trace-Id': 'mine' } });
    expect([await response.text(), response.headers.get('x-trace-id')]).toEqual(['true', 'mine']);
    expect(app?.get(LOCKS)).toBe(locks);
  });

  it.each<[string, object, string]>([
    ['no locks', {}, 'Expected the options of `LocksModule` to have `locks`, got `undefined`'],
    ['an option that there is not', { wait: 1 }, 'wait'],
  ])('The module refuses %s when the application is created', async (_, options, message) => {
    const given = 'wait' in options ? { ...options, locks } : options;
    await expect(start([], LocksModule.forRoot(given as never))).rejects.toThrow(
      expect.objectContaining({ code: 'ERR_LOCK_CONFIG', message: expect.stringContaining(message) }),
    );
  });

  it('Two modules of one application with different locks are refused when it starts', async () => {
    const others = createTestLocks();
    const modules = [LocksModule.forRoot({ locks }), LocksModule.forRoot({ locks: others })];
    const feature = { module: class Feature {}, imports: [modules[1] as DynamicModule] };
    const root = { module: class Root {}, imports: [modules[0] as DynamicModule, feature] };
    app = await NestFactory.create(root, createAdapter(), { logger });
    await expect(app.init()).rejects.toMatchObject({
      code: 'ERR_LOCK_CONFIG',
      message: expect.stringContaining('once'),
    });
    await app.close();
    await others.end();
  });

  it('Two modules of one application with the same locks are as one', async () => {
    @Controller()
    class Guarded {
      @Get()
      @LockOn('k')
      async get(@Req() { lock: hold }: LockedRequest): Promise<boolean> {
        return hold?.isHeld() === true;
      }
    }
    const feature = { module: class Feature {}, imports: [LocksModule.forRoot({ locks })], controllers: [Guarded] };
    const root = { module: class Root {}, imports: [LocksModule.forRoot({ locks }), feature] };
    app = await NestFactory.create(root, createAdapter(), { logger });
    await app.listen(0, '127.0.0.1');
    expect(await (await fetch(await app.getUrl())).json()).toBe(true);
    await app.close();
    await expect(runInTrace(() => lock.acquire('k'), { locks })).rejects.toMatchObject({ code: 'ERR_LOCK_CLOSED' });
  });

  it('Middleware that `app.use` mounts can lock, if traceContext is mounted before it as well', async () => {
    const root = { module: class Root {}, imports: [LocksModule.forRoot({ locks, trust: 'all' })] };
    app = await NestFactory.create(root, createAdapter(), { logger });
    app.use(traceContext({ locks, trust: 'all' }));
    app.use((_req: unknown, res: { end(text: string): void }) => void lock.run('k', (hold) => res.end(pathOf(hold))));
    await app.listen(0, '127.0.0.1');
    expect(await (await fetch(await app.getUrl(), { headers: { 'X-Trace-Id': 'mine' } })).text()).toBe('mine');
  });

  it('An application that is closed lets the holder respond, refuses the waiter, and closes the locks', async () => {
    const seen: string[] = [];
    @Controller()
    class Slow implements OnApplicationShutdown {
      @Get()
      @LockOn('k')
      async get(): Promise<string> {
        inside.open();
        await work;
        seen.push('responded');
        return 'done';
      }

      onApplicationShutdown(): void {
        seen.push('shut down');
      }
    }
    const url = await start([Slow]);
    const first = fetch(url);
    await inside;
    const second = fetch(url);
    await locks.whenWaiting('k');
    const closed = app?.close();
    expect((await second).status).toBe(503);
    work.open();
    expect(await (await first).text()).toBe('done');
    await closed;
    expect(seen).toEqual(['responded', 'shut down']);
    await expect(runInTrace(() => lock.acquire('k'), { locks })).rejects.toMatchObject({ code: 'ERR_LOCK_CLOSED' });
  });

  it('An application that is closed cuts off a request that has not responded a second after drainMs', async () => {
    await locks.end();
    locks = createTestLocks({ drainMs: 0 });
    @Controller()
    class Slow {
      @Get()
      async get(): Promise<string> {
        inside.open();
        await work;
        return 'done';
      }
    }
    const request = fetch(await start([Slow], LocksModule.forRoot({ locks })));
    await inside;
    await Promise.all([app?.close(), expect(request).rejects.toThrow('fetch failed')]);
  });

  it('A guard on something other than an HTTP route, such as a resolver of GraphQL, is an error that names what to do', async () => {
    class Resolver {
      @LockOn('k')
      async order(): Promise<string> {
        return 'in';
      }
    }
    await start([]);
    const resolver = new Resolver();
    // As @nestjs/graphql calls resolvers.
    const creator = app?.get(ExternalContextCreator) as ExternalContextCreator;
    const call = creator.create(
      resolver,
      resolver.order,
      'order',
      undefined,
      undefined,
      undefined,
      undefined,
      {
        interceptors: true,
        guards: true,
        filters: true,
      },
      'graphql',
    );
    await expect(call({}, {}, {})).rejects.toThrow(
      expect.objectContaining({ code: 'ERR_LOCK_CONFIG', message: expect.stringContaining("of the type 'graphql'") }),
    );
  });
});

describe('The end of an application', () => {
  it('An application without a server closes its locks, too', async () => {
    const context = await NestFactory.createApplicationContext(LocksModule.forRoot({ locks }), { logger });
    await context.close();
    await expect(runInTrace(() => lock.acquire('k'), { locks })).rejects.toMatchObject({ code: 'ERR_LOCK_CLOSED' });
  });

  it('An application on HTTP/2 guards its routes, and is closed when its clients have left', async () => {
    @Controller()
    class Guarded {
      @Get(':request')
      @LockOn('k')
      async get(@Req() { lock: hold }: LockedRequest): Promise<string> {
        inside.open();
        await work;
        return String(pathOf(hold));
      }
    }
    const imports = [LocksModule.forRoot({ locks, trust: 'all' })];
    const root = { module: class Root {}, imports, controllers: [Guarded] };
    app = await NestFactory.create(root, new FastifyAdapter({ http2: true }), { logger });
    await app.listen(0, '127.0.0.1');
    const client = await Http2Client.connect((app.getHttpServer().address() as AddressInfo).port, 'HTTP/2');
    const first = client.request({ path: '/first', trace: 'first' });
    await inside;
    const gone = client.request({ path: '/gone', trace: 'gone' });
    await locks.whenWaiting('k', 1);
    const third = client.request({ path: '/third', trace: 'third' });
    await locks.whenWaiting('k', 2);
    gone.stream.close(constants.NGHTTP2_CANCEL);
    await until(
      async () => (await locks.inspect('k')).waiters.length,
      (count) => count === 1,
    );
    work.open();
    await Promise.all([first.closed, third.closed]);
    expect([first.received, third.received]).toEqual(['first', 'third']);
    client.destroy();
    await app.close();
    await expect(runInTrace(() => lock.acquire('k'), { locks })).rejects.toMatchObject({ code: 'ERR_LOCK_CLOSED' });
  });
});
