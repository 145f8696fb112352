import { createReadStream } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import Router from '@koa/router';
import { koaMiddleware } from 'cls-rtracer';
import Koa, { type Context, type Next } from 'koa';
import { lockOn, sendProblem, traceContext } from 'reenlock/koa';
import { adapted, readJson } from './adapted.ts';
import type { App, Call, Framework, Handler, Middleware } from './frameworks.ts';

type KoaMiddleware = (ctx: Context, next: Next) => unknown;

// The alias of the other major version has no types of its own.
const load = createRequire(__filename);

export const koa3: Framework = framework('Koa 3', Koa);
export const koa2 = (): Framework => framework('Koa 2', load('koa2') as typeof Koa);

function framework(name: string, Application: typeof Koa): Framework {
  return {
    name,
    adapter: 'koa',
    style: 'promise',
    awaitsHandlers: true,
    endsResponses: true,
    answersRejections: true,
    traceContext,
    lockOn: (key, options = {}) =>
      lockOn(typeof key === 'string' ? key : (ctx) => key(koaCall(ctx)), adapted(options, koaCall, sendProblem)),
    middleware: (run) => (ctx: Context, next: Next) => run(koaCall(ctx), next),
    rtracer: () => (ctx: Context, next: Next) =>
      koaMiddleware()(ctx as unknown as { request: IncomingMessage; response: ServerResponse }, next),
    json: () => async (ctx: Context, next: Next) => {
      await readJson(ctx.req);
      return next();
    },
    app: () => new KoaApp(Application),
  };
}

class KoaApp implements App {
  readonly #app: Koa;
  readonly #steps: KoaMiddleware[] = [];
  readonly #prefix: string;

  constructor(Application: typeof Koa, prefix = '') {
    this.#app = new Application();
    this.#app.silent = true;
    this.#prefix = prefix;
  }

  use(...middleware: readonly Middleware[]): this {
    this.#steps.push(...(middleware as KoaMiddleware[]));
    return this;
  }

  route(path: string, ...steps: readonly [...Middleware[], Handler]): this {
    const handler = steps.at(-1) as Handler;
    const router = new Router();
    router.all(this.#prefix + path, ...(steps.slice(0, -1) as []), (ctx) => handler(koaCall(ctx)) as Promise<void>);
    this.#steps.push(router.routes() as unknown as KoaMiddleware);
    return this;
  }

  mount(path: string, build: (sub: App) => void): this {
    const sub = new KoaApp(Koa, this.#prefix + path);
    build(sub);
    const run = compose(sub.#steps);
    this.#steps.push((ctx, next) => (ctx.path.startsWith(`${this.#prefix}${path}/`) ? run(ctx, next) : next()));
    return this;
  }

  onError(handler: (error: object, call: Call) => void): this {
    this.#steps.unshift(async (ctx, next) => {
      try {
        await next();
      } catch (error) {
        handler(error as object, koaCall(ctx));
      }
    });
    return this;
  }

  listener(): RequestListener {
    for (const step of this.#steps) this.#app.use(step as Koa.Middleware);
    return this.#app.callback();
  }
}

function compose(steps: readonly KoaMiddleware[]): KoaMiddleware {
  return (ctx, next) => {
    const from = (index: number): Promise<unknown> =>
      Promise.resolve(steps[index] === undefined ? next() : steps[index](ctx, () => from(index + 1)));
    return from(0);
  };
}

function koaCall(ctx: Context): Call {
  return {
    req: ctx.req,
    res: ctx.res,
    params: (ctx.params ?? {}) as Record<string, string>,
    get lock() {
      return ctx.state.lock;
    },
    get locks() {
      return ctx.state.locks;
    },
    send: (body, status = 200) => {
      ctx.status = status;
      ctx.body = body;
    },
    stream: (source) => {
      ctx.body = source;
    },
    sendFile: (path) => {
      ctx.body = createReadStream(path);
    },
    fail: (error) => {
      throw error;
    },
    detach: () => {
      ctx.respond = false;
    },
  };
}
