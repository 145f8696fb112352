import { createReadStream } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { expressMiddleware } from 'cls-rtracer';
import type { Request } from 'express';
import type { Hold } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import type { App, Call, Framework, GuardOptions, Handler, Middleware } from './frameworks.ts';

type Next = (error?: unknown) => void;
type Step = (req: IncomingMessage, res: ServerResponse, next: Next) => unknown;

/** No framework: the Express middleware on Node's own request and response, HTTP/2's compatible ones too. */
export const bare: Framework = {
  name: 'no framework',
  family: 'express',
  awaitsHandlers: false,
  answersRejections: true,
  traceContext,
  lockOn: (key, { skip: _, handler: __, ...options }: GuardOptions = {}) =>
    lockOn(typeof key === 'string' ? key : (req, res) => key(bareCall(req as Request, res, () => {})), options),
  middleware: (run) => (req: IncomingMessage, res: ServerResponse, next: Next) =>
    run(bareCall(req, res, next), () => next()),
  rtracer: () => expressMiddleware() as unknown as Middleware,
  json: () => {
    throw new Error('There is no body parser without a framework');
  },
  app: () => new BareApp(),
};

class BareApp implements App {
  readonly #steps: Step[] = [];

  use(...middleware: readonly Middleware[]): this {
    this.#steps.push(...(middleware as unknown as Step[]));
    return this;
  }

  route(path: string, ...steps: readonly [...Middleware[], Handler]): this {
    const handler = steps.at(-1) as Handler;
    const last: Step = (req, res, next) => handler(bareCall(req, res, next));
    for (const step of [...(steps.slice(0, -1) as unknown as Step[]), last]) {
      this.#steps.push((req, res, next) => (req.url === path ? step(req, res, next) : next()));
    }
    return this;
  }

  mount(): never {
    throw new Error('There are no sub-applications without a framework');
  }

  onError(): never {
    throw new Error('There is no error middleware without a framework');
  }

  inProduction(): this {
    return this;
  }

  listener(): RequestListener {
    return (req, res) => this.#run(0, req, res);
  }

  #run(index: number, req: IncomingMessage, res: ServerResponse, error?: unknown): void {
    const step = this.#steps[index];
    if (error !== undefined || step === undefined) {
      res.statusCode = error === undefined ? 404 : ((error as { status?: number }).status ?? 500);
      res.end();
      return;
    }
    const next: Next = (error) => this.#run(index + 1, req, res, error);
    void new Promise((resolve) => resolve(step(req, res, next))).catch(next);
  }
}

function bareCall(req: IncomingMessage, res: ServerResponse, next: Next): Call {
  const { lock, locks } = req as { lock?: Hold; locks?: ReadonlyMap<string, Hold> };
  return {
    req,
    res,
    params: {},
    lock,
    locks,
    send: (body, status = 200) => {
      res.statusCode = status;
      if (Buffer.isBuffer(body)) res.end(body);
      else if (typeof body === 'object') res.setHeader('Content-Type', 'application/json').end(JSON.stringify(body));
      else res.end(String(body));
    },
    stream: (source) => void source.pipe(res),
    sendFile: (path) => void createReadStream(path).pipe(res),
    fail: next,
    detach: () => {},
  };
}
