import { createReadStream } from 'node:fs';
import { type IncomingMessage, type RequestListener, type ServerResponse, STATUS_CODES } from 'node:http';
import { expressMiddleware } from 'cls-rtracer';
import type { LockError } from 'reenlock';
import { lockOn, sendProblem, traceContext } from 'reenlock/node';
import { adapted, readJson } from './adapted.ts';
import type { App, Call, Framework, Handler, Middleware } from './frameworks.ts';

type Next = (error?: unknown) => void;
type Routed = IncomingMessage & { params?: Record<string, string> };
type Step = (req: Routed, res: ServerResponse, next: Next) => unknown;

/** No framework: middleware on Node's own request and response, HTTP/2's compatible ones too. */
export const bare: Framework = {
  name: 'no framework',
  adapter: 'node',
  style: 'callback',
  awaitsHandlers: false,
  endsResponses: false,
  answersRejections: true,
  traceContext,
  lockOn: (key, options = {}) =>
    lockOn(
      typeof key === 'string' ? key : (req, res) => key(bareCall(req, res)),
      adapted(options, bareCall, sendProblem),
    ),
  middleware: (run) => (req: Routed, res: ServerResponse, next: Next) => run(bareCall(req, res, next), () => next()),
  rtracer: () => expressMiddleware() as unknown as Middleware,
  json: () => async (req: IncomingMessage, _res: ServerResponse, next: Next) => {
    await readJson(req);
    next();
  },
  app: () => new BareApp(),
};

const noNext: Next = () => {
  throw new Error('Nothing comes next here');
};

/** The least that an application without a framework has: steps in their order, and parameters in paths. */
class BareApp implements App {
  readonly #steps: Step[] = [];
  readonly #prefix: string;
  #onError: ((error: object, call: Call) => void) | undefined;

  constructor(prefix = '') {
    this.#prefix = prefix;
  }

  use(...middleware: readonly Middleware[]): this {
    this.#steps.push(...(middleware as unknown as Step[]));
    return this;
  }

  route(path: string, ...steps: readonly [...Middleware[], Handler]): this {
    const handler = steps.at(-1) as Handler;
    const last: Step = (req, res, next) => handler(bareCall(req, res, next));
    const pattern = new RegExp(`^${this.#prefix}${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`);
    for (const step of [...(steps.slice(0, -1) as unknown as Step[]), last]) {
      this.#steps.push((req, res, next) => {
        const match = pattern.exec(req.url ?? '');
        if (match === null) return next();
        req.params = { ...match.groups };
        return step(req, res, next);
      });
    }
    return this;
  }

  mount(path: string, build: (sub: App) => void): this {
    const prefix = this.#prefix + path;
    const sub = new BareApp(prefix);
    build(sub);
    this.#steps.push((req, res, next) => (req.url?.startsWith(`${prefix}/`) ? sub.#run(0, req, res, next) : next()));
    return this;
  }

  onError(handler: (error: object, call: Call) => void): this {
    this.#onError = handler;
    return this;
  }

  listener(): RequestListener {
    return (req, res) => this.#run(0, req, res, (error) => this.#end(req, res, error));
  }

  #run(index: number, req: Routed, res: ServerResponse, done: Next, error?: unknown): void {
    const step = this.#steps[index];
    if (error !== undefined || step === undefined) {
      done(error);
      return;
    }
    const next: Next = (error) => this.#run(index + 1, req, res, done, error);
    void new Promise((resolve) => resolve(step(req, res, next))).catch(next);
  }

  #end(req: Routed, res: ServerResponse, error: unknown): void {
    if (error !== undefined && this.#onError !== undefined) {
      this.#onError(error as object, bareCall(req, res));
      return;
    }
    if (res.headersSent) {
      req.socket.destroy();
      return;
    }
    const { status = 500, headers, expose, message } = (error ?? { status: 404 }) as Partial<LockError>;
    res.writeHead(status, headers);
    res.end(expose ? message : STATUS_CODES[status]);
  }
}

function bareCall(req: Routed, res: ServerResponse, next: Next = noNext): Call {
  return {
    req,
    res,
    params: req.params ?? {},
    get lock() {
      return req.lock;
    },
    get locks() {
      return req.locks;
    },
    send: (body, status = 200) => {
      const isJson = typeof body === 'object' && !Buffer.isBuffer(body);
      res.statusCode = status;
      res.setHeader('Content-Type', isJson ? 'application/json' : 'text/plain');
      res.end(isJson ? JSON.stringify(body) : body);
    },
    stream: (source) => void source.pipe(res),
    sendFile: (path) => void createReadStream(path).pipe(res),
    fail: next,
    detach: () => {},
  };
}
