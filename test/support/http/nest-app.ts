import { createReadStream } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Readable } from 'node:stream';
import {
  All,
  type ArgumentsHost,
  type CallHandler,
  Controller,
  createParamDecorator,
  type DynamicModule,
  type ExceptionFilter,
  type ExecutionContext,
  HttpException,
  NotFoundException,
  StreamableFile,
  type Type,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { expressMiddleware } from 'cls-rtracer';
import { isLockError, type LockError, type Locks } from 'reenlock';
import {
  type Middleware as Connect,
  type KeyRequest,
  type LockedRequest,
  LockOn,
  LocksModule,
  traceContext,
} from 'reenlock/nest';
import { lastValueFrom, NEVER, type Observable, of } from 'rxjs';
import { LockErrorFilter } from '../../../src/nest/error-filter.ts';
import { readJson } from './adapted.ts';
import type { App, Call, Framework, GuardOptions, Handler, Middleware } from './frameworks.ts';

type TraceOptions = Parameters<typeof traceContext>[0];

/** All middleware is decorators of interceptors, for controllers and their routes. */
type Step = (MethodDecorator & ClassDecorator) & { readonly trace?: { readonly options: TraceOptions } };

/** A call, with the result that its handler has made. */
type NestCall = Call & { readonly result: unknown };

/** In place of a result: the handler answers by itself. */
const detached = Symbol('detached');

const { version } = createRequire(__filename)('@nestjs/core/package.json') as { readonly version: string };
const nest = `Nest ${version.split('.')[0]}`;

/** @public Loaded by its path. */
export const nestExpress: Framework = framework(`${nest} on Express`, () => new ExpressAdapter());
/** @public Loaded by its path. */
export const nestFastify: Framework = framework(`${nest} on Fastify`, () => {
  const adapter = new FastifyAdapter();
  // Tests read bodies where they stand.
  const app = adapter.getInstance();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  return adapter;
});

function framework(name: string, createAdapter: () => AbstractHttpAdapter): Framework {
  return {
    name,
    adapter: 'nest',
    style: 'promise',
    awaitsHandlers: true,
    endsResponses: true,
    answersRejections: true,
    traceContext: (options) => asMiddleware(Object.assign(connected(traceContext(options)), { trace: { options } })),
    lockOn: (key, options = {}) =>
      asMiddleware(
        LockOn(typeof key === 'string' ? key : (_, context) => key(nestCall(context)), guardOptions(options)),
      ),
    middleware: (run) =>
      asMiddleware(
        intercepting(async (context, next) => {
          const call = nestCall(context);
          let passed: unknown;
          await run(call, async () => {
            passed = await lastValueFrom(next.handle(), { defaultValue: undefined });
          });
          return of(call.result ?? passed);
        }),
      ),
    rtracer: () => asMiddleware(connected(expressMiddleware() as unknown as Connect)),
    json: () =>
      asMiddleware(
        intercepting(async (context, next) => {
          await readJson(rawOf(context).req);
          return next.handle();
        }),
      ),
    app: () => new NestApp(createAdapter()),
  };
}

function guardOptions({ skip, handler, ...rest }: GuardOptions): Parameters<typeof LockOn<KeyRequest>>[1] {
  return {
    ...rest,
    ...(skip && { skip: (_, context) => skip(nestCall(context)) }),
    // The module's filter sends problem documents.
    ...(typeof handler === 'function' && {
      handler: async (error, _, context) => {
        const call = nestCall(context);
        await handler(error, call);
        return call.result;
      },
    }),
  };
}

function asMiddleware(step: Step): Middleware {
  return step as unknown as Middleware;
}

function intercepting(
  intercept: (context: ExecutionContext, next: CallHandler) => Promise<Observable<unknown>>,
): MethodDecorator & ClassDecorator {
  return UseInterceptors({ intercept });
}

/** Middleware as Connect had it, on a route. */
function connected(run: Connect): MethodDecorator & ClassDecorator {
  return intercepting(
    (context, next) =>
      new Promise((resolve, reject) => {
        const { req, res } = rawOf(context);
        run(req, res, (error) => (error === undefined ? resolve(next.handle()) : reject(error)));
      }),
  );
}

/** The outermost interceptor. A detached handler has no result, ever. */
const outermost = intercepting(async (context, next) => {
  const result: unknown = await lastValueFrom(next.handle(), { defaultValue: undefined }).catch((error: unknown) =>
    Promise.reject(asNests(error, rawOf(context).res)),
  );
  return result === detached ? NEVER : of(result);
});

/** What all sub-applications share. */
interface Built {
  readonly imports: DynamicModule[];
  readonly controllers: Type[];
  onError?: ErrorHandler;
}

/** Each route is a controller of its own. */
class NestApp implements App {
  readonly #adapter: AbstractHttpAdapter;
  readonly #prefix: string;
  readonly #built: Built;
  readonly #steps: Step[];

  constructor(
    adapter: AbstractHttpAdapter,
    prefix = '',
    built: Built = { imports: [], controllers: [] },
    steps: readonly Step[] = [outermost],
  ) {
    this.#adapter = adapter;
    this.#prefix = prefix;
    this.#built = built;
    this.#steps = [...steps];
  }

  use(...middleware: readonly Middleware[]): this {
    for (const step of middleware as unknown as Step[]) {
      const locks = step.trace?.options?.locks;
      if (locks !== undefined && this.#steps.length === 1 && this.#built.imports.length === 0)
        this.#import({ ...step.trace?.options, locks });
      else this.#steps.push(step);
    }
    return this;
  }

  route(path: string, ...steps: readonly [...Middleware[], Handler]): this {
    const handler = steps.at(-1) as Handler;
    class Route {
      async handle(call: NestCall): Promise<unknown> {
        await handler(call);
        if (call.result === undefined && !call.res.writableEnded && !call.res.closed) throw new NotFoundException();
        return call.result;
      }
    }
    const method = Object.getOwnPropertyDescriptor(Route.prototype, 'handle') as PropertyDescriptor;
    for (const step of steps.slice(0, -1) as unknown as Step[]) step(Route.prototype, 'handle', method);
    All(this.#prefix + path)(Route.prototype, 'handle', method);
    Object.defineProperty(Route.prototype, 'handle', method);
    ThisCall()(Route.prototype, 'handle', 0);
    for (const step of this.#steps) step(Route);
    Controller()(Route);
    this.#built.controllers.push(Route);
    return this;
  }

  mount(path: string, build: (sub: App) => void): this {
    const sub = new NestApp(this.#adapter, this.#prefix + path, this.#built, this.#steps);
    build(sub);
    // Interceptors run on routes only.
    sub.route('/:rest', (call) => call.fail(new NotFoundException()));
    return this;
  }

  onError(handler: ErrorHandler): this {
    this.#built.onError = handler;
    return this;
  }

  async listener(): Promise<RequestListener> {
    const { imports, controllers, onError } = this.#built;
    if (onError !== undefined) for (const each of controllers) UseFilters(new OnError(onError, this.#adapter))(each);
    const root = { module: class Root {}, imports, controllers };
    const app = await NestFactory.create(root, this.#adapter, { logger: false, bodyParser: false });
    // Without traceContext there is no module, whose filter this is.
    if (imports.length === 0) app.useGlobalFilters(new LockErrorFilter());
    await app.init();
    const instance: unknown = this.#adapter.getInstance();
    if (!(this.#adapter instanceof FastifyAdapter)) return instance as RequestListener;
    await this.#adapter.getInstance().ready();
    return (req, res) => (this.#adapter as FastifyAdapter).getInstance().routing(req, res);
  }

  #import(options: TraceOptions & { readonly locks: Locks }): void {
    this.#built.imports.push(LocksModule.forRoot(options));
  }
}

type ErrorHandler = (error: object, call: Call) => unknown;

/** The application's error handler. */
class OnError implements ExceptionFilter<object> {
  readonly #handle: ErrorHandler;
  readonly #adapter: AbstractHttpAdapter;

  constructor(handle: ErrorHandler, adapter: AbstractHttpAdapter) {
    this.#handle = handle;
    this.#adapter = adapter;
  }

  async catch(error: object, host: ArgumentsHost): Promise<void> {
    const call = nestCall(host);
    await this.#handle(error instanceof HttpException ? ((error.cause ?? error) as object) : error, call);
    if (call.result !== detached) this.#adapter.reply(host.getArgByIndex(1), call.result);
  }
}

const ThisCall = createParamDecorator((_: unknown, context: ExecutionContext) => nestCall(context));

/** Nest's own error for one that has the form of Express's and Koa's. */
function asNests(error: unknown, res: ServerResponse): unknown {
  const { status, message, headers = {} } = error as Partial<LockError>;
  if (isLockError(error) || error instanceof HttpException || status === undefined) return error;
  if (!res.headersSent) for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  return new HttpException(String(message), status, { cause: error });
}

interface Platform extends LockedRequest {
  readonly raw?: IncomingMessage;
  readonly params?: Record<string, string>;
}

function rawOf(host: ArgumentsHost): { readonly req: IncomingMessage; readonly res: ServerResponse } {
  const [request, response] = host.getArgs<[Platform, { readonly raw?: ServerResponse }]>();
  return {
    req: request.raw ?? (request as unknown as IncomingMessage),
    res: response.raw ?? (response as unknown as ServerResponse),
  };
}

function nestCall(host: ArgumentsHost): NestCall {
  const [request, response] = host.getArgs<[Platform, { status(code: number): unknown }]>();
  const { req, res } = rawOf(host);
  let result: unknown;
  const stream = (source: Readable): void => {
    result = new StreamableFile(source);
  };
  return {
    req,
    res,
    params: request.params ?? {},
    get lock() {
      return request.lock;
    },
    get locks() {
      return request.locks;
    },
    get result() {
      return result;
    },
    send: (body, status = 200) => {
      response.status(status);
      if (Buffer.isBuffer(body)) result = new StreamableFile(body);
      else result = typeof body === 'number' ? String(body) : body;
    },
    stream,
    sendFile: (path) => stream(createReadStream(path)),
    fail: (error) => {
      throw error;
    },
    detach: () => {
      result = detached;
    },
  };
}
