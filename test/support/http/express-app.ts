import type { RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import { expressMiddleware } from 'cls-rtracer';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { lockOn, sendProblem, traceContext } from 'reenlock/express';
import { adapted } from './adapted.ts';
import type { App, Call, Framework, Handler, Middleware } from './frameworks.ts';

type Next = (error?: unknown) => void;

// The alias of the other major version has no types of its own.
const load = createRequire(__filename);

export const express5: Framework = framework('Express 5', express, true);
export const express4 = (): Framework => framework('Express 4', load('express4') as typeof express, false);

function framework(name: string, create: typeof express, answersRejections: boolean): Framework {
  return {
    name,
    adapter: 'express',
    style: 'callback',
    awaitsHandlers: false,
    endsResponses: false,
    answersRejections,
    traceContext,
    lockOn: (key, options = {}) =>
      lockOn(
        typeof key === 'string' ? key : (req, res) => key(expressCall(req as Request, res)),
        adapted(options, expressCall, sendProblem),
      ),
    middleware: (run) => (req: Request, res: Response, next: Next) =>
      run(expressCall(req, res, next), () => next()) as undefined,
    rtracer: () => expressMiddleware(),
    json: () => create.json(),
    app: () => new ExpressApp(create, answersRejections),
  };
}

class ExpressApp implements App {
  readonly #create: typeof express;
  readonly #answersRejections: boolean;
  readonly #app: Express;
  #onError: ((error: object, call: Call) => void) | undefined;

  constructor(create: typeof express, answersRejections: boolean) {
    this.#create = create;
    this.#answersRejections = answersRejections;
    this.#app = create();
  }

  use(...middleware: readonly Middleware[]): this {
    for (const each of middleware) this.#app.use(each as RequestHandler);
    return this;
  }

  route(path: string, ...steps: readonly [...Middleware[], Handler]): this {
    const handler = steps.at(-1) as Handler;
    const last = (req: Request, res: Response, next: Next): unknown => {
      const returned = handler(expressCall(req, res, next));
      if (this.#answersRejections) return returned;
      // Express 4 leaves it to the process, as an unhandled rejection; here that is the end of it.
      return Promise.resolve(returned).catch(() => {});
    };
    this.#app.all(path, ...(steps.slice(0, -1) as RequestHandler[]), last as RequestHandler);
    return this;
  }

  mount(path: string, build: (sub: App) => void): this {
    const sub = new ExpressApp(this.#create, this.#answersRejections);
    build(sub);
    this.#app.use(path, sub.#app);
    return this;
  }

  onError(handler: (error: object, call: Call) => void): this {
    this.#onError = handler;
    return this;
  }

  listener(): RequestListener {
    const onError = this.#onError;
    if (onError !== undefined) {
      this.#app.use((error: object, req: Request, res: Response, next: Next) =>
        onError(error, expressCall(req, res, next)),
      );
    }
    return this.#app;
  }
}

const noNext: Next = () => {
  throw new Error('Nothing comes next here');
};

function expressCall(req: Request, res: Response, next: Next = noNext): Call {
  return {
    req,
    res,
    params: req.params as Record<string, string>,
    get lock() {
      return req.lock;
    },
    get locks() {
      return req.locks;
    },
    send: (body, status = 200) => void res.status(status).send(body),
    stream: (source) => void source.pipe(res),
    sendFile: (path) => res.sendFile(path),
    fail: next,
    detach: () => {},
  };
}
