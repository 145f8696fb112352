import { createReadStream } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { getRequestListener } from '@hono/node-server';
import { runWithId } from 'cls-rtracer';
import { type Context, Hono, type MiddlewareHandler, type Next } from 'hono';
import { isLockError, type LockError } from 'reenlock';
import { lockOn, sendProblem, traceContext } from 'reenlock/hono';
import type { App, Call, Framework, GuardOptions, Handler, Middleware } from './frameworks.ts';

/** A call, with the response that its handler has made. */
type HonoCall = Call & { readonly response: Response | undefined };

export const hono4: Framework = {
  name: 'Hono 4',
  adapter: 'hono',
  style: 'promise',
  awaitsHandlers: true,
  endsResponses: true,
  answersRejections: true,
  traceContext: traceContext as Framework['traceContext'],
  lockOn: (key, options = {}) =>
    lockOn(typeof key === 'string' ? key : (c) => key(honoCall(c)), guardOptions(options)) as Middleware,
  middleware: (run) => async (c: Context, next: Next) => {
    const call = honoCall(c);
    await run(call, next);
    return call.response;
  },
  rtracer: () => (_: Context, next: Next) => runWithId(next) as Promise<void>,
  json: () => async (c: Context, next: Next) => {
    const body: unknown = await c.req.json().catch((error: unknown) => Promise.reject(ofThisRealm(error)));
    Object.assign(c.env.incoming, { body });
    await next();
  },
  app: () => new HonoApp(),
};

function guardOptions({ skip, handler, ...rest }: GuardOptions): Parameters<typeof lockOn>[1] {
  return {
    ...rest,
    ...(skip && { skip: (c) => skip(honoCall(c)) }),
    ...(handler === 'problem' && { handler: sendProblem }),
    ...(typeof handler === 'function' && {
      handler: async (error, c) => {
        const call = honoCall(c);
        await handler(error, call);
        return call.response ?? c.body(null);
      },
    }),
  };
}

/** Node's own errors are of another realm than jest's, and Hono asks with `instanceof`. */
function ofThisRealm(error: unknown): Error {
  return error instanceof Error ? error : Object.assign(new Error((error as Error).message), error);
}

class HonoApp implements App {
  readonly #app: Hono = new Hono();

  constructor() {
    // As Hono's own, and also for errors that have the form of Express's and Koa's.
    this.#app.onError((error, c) => {
      if (isLockError(error)) return error.getResponse();
      const { status = 500, headers, message } = error as Partial<LockError>;
      return c.text(message ?? '', status as 500, headers);
    });
  }

  use(...middleware: readonly Middleware[]): this {
    for (const each of middleware) this.#app.use(each as MiddlewareHandler);
    return this;
  }

  route(path: string, ...steps: readonly [...Middleware[], Handler]): this {
    const handler = steps.at(-1) as Handler;
    const last: MiddlewareHandler = async (c) => {
      const call = honoCall(c);
      try {
        await handler(call);
      } catch (error) {
        throw ofThisRealm(error);
      }
      return call.response ?? c.notFound();
    };
    this.#app.on('ALL', [path], ...(steps.slice(0, -1) as MiddlewareHandler[]), last);
    return this;
  }

  mount(path: string, build: (sub: App) => void): this {
    const sub = new HonoApp();
    build(sub);
    this.#app.route(path, sub.#app);
    return this;
  }

  onError(handler: (error: object, call: Call) => unknown): this {
    this.#app.onError(async (error, c) => {
      const call = honoCall(c);
      await handler(error, call);
      return call.response ?? c.body(null);
    });
    return this;
  }

  listener(): RequestListener {
    return getRequestListener(this.#app.fetch, { overrideGlobalObjects: false });
  }
}

function honoCall(c: Context): HonoCall {
  const { incoming, outgoing } = c.env as { incoming: IncomingMessage; outgoing: ServerResponse };
  let response: Response | undefined;
  return {
    req: incoming,
    res: outgoing,
    params: c.req.param(),
    get lock() {
      return c.get('lock');
    },
    get locks() {
      return c.get('locks');
    },
    get response() {
      return response;
    },
    send: (body, status = 200) => {
      c.status(status as 200);
      if (status === 204 || status === 304) response = c.body(null);
      else if (Buffer.isBuffer(body)) response = c.body(new Uint8Array(body));
      else response = typeof body === 'object' ? c.json(body) : c.text(String(body));
    },
    stream: (source) => {
      response = c.body(Readable.toWeb(source) as ReadableStream, 200, typeOf(outgoing));
    },
    sendFile: (path) => {
      response = c.body(Readable.toWeb(createReadStream(path)) as ReadableStream);
    },
    fail: (error) => {
      throw ofThisRealm(error);
    },
    detach: () => {
      response = new Response(null, { headers: { 'x-hono-already-sent': 'true' } });
    },
  };
}

/** What was set on Node's response: Hono would put a type of its own over it. */
function typeOf(outgoing: ServerResponse): Record<string, string> {
  const type = outgoing.getHeader('Content-Type');
  return typeof type === 'string' ? { 'Content-Type': type } : {};
}
