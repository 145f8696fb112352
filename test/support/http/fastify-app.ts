import { createReadStream } from 'node:fs';
import type { RequestListener } from 'node:http';
import { fastifyPlugin } from 'cls-rtracer';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { lockOn, type Plugin, sendProblem, traceContext } from 'reenlock/fastify';
import { adapted, readJson } from './adapted.ts';
import type { App, Call, Framework, Handler, Middleware } from './frameworks.ts';

type Hook = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void;
type Step = Hook | Plugin;

export const fastify5: Framework = {
  name: 'Fastify 5',
  adapter: 'fastify',
  style: 'callback',
  awaitsHandlers: false,
  endsResponses: false,
  answersRejections: true,
  traceContext: traceContext as Framework['traceContext'],
  lockOn: (key, options = {}) =>
    lockOn(
      typeof key === 'string' ? key : (request, reply) => key(fastifyCall(request, reply)),
      adapted(options, fastifyCall, sendProblem),
    ) as Middleware,
  middleware: (run) => {
    const hook: Hook = (request, reply, done) =>
      void new Promise((resolve) => resolve(run(fastifyCall(request, reply), () => done()))).catch(done);
    return hook as Middleware;
  },
  rtracer: () => fastifyPlugin as unknown as Middleware,
  json: () => {
    const hook: Hook = (request, _, done) =>
      void readJson(request.raw).then(
        () => done(),
        (error) => done(ofThisRealm(error)),
      );
    return hook as Middleware;
  },
  app: () => {
    const app = fastify();
    // Tests read bodies where they stand. Fastify's own parser has a test of its own.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
    return new FastifyApp(app);
  },
};

/** Middleware of an application is its hooks at `onRequest`, that of a route its hooks at `preHandler`. */
class FastifyApp implements App {
  readonly #app: FastifyInstance;

  constructor(app: FastifyInstance) {
    this.#app = app;
  }

  use(...middleware: readonly Middleware[]): this {
    for (const step of middleware as unknown as Step[]) {
      if (isPlugin(step)) this.#app.register(step);
      // As a plugin, so that it comes after those before it.
      else this.#app.register(shared((app) => void app.addHook('onRequest', step)));
    }
    return this;
  }

  route(path: string, ...steps: readonly [...Middleware[], Handler]): this {
    const handler = steps.at(-1) as Handler;
    const hooks = steps.slice(0, -1) as unknown as Step[];
    const lastPlugin = hooks.findLastIndex(isPlugin);
    this.#app.register(async (app) => {
      new FastifyApp(app).use(...(hooks.slice(0, lastPlugin + 1) as unknown as Middleware[]));
      app.register(
        shared((app) =>
          app.all(path, { preHandler: hooks.slice(lastPlugin + 1) as Hook[] }, (request, reply) => {
            const returned = handler(fastifyCall(request, reply));
            // An async handler of Fastify's that sends by itself returns the reply.
            return returned instanceof Promise ? returned.then(() => reply) : undefined;
          }),
        ),
      );
    });
    return this;
  }

  mount(path: string, build: (sub: App) => void): this {
    this.#app.register(
      async (app) => {
        build(new FastifyApp(app));
        app.setNotFoundHandler((_, reply) => void reply.code(404).send('not found'));
      },
      { prefix: path },
    );
    return this;
  }

  onError(handler: (error: object, call: Call) => void): this {
    this.#app.setErrorHandler((error, request, reply) => {
      const returned: unknown = handler(error as object, fastifyCall(request, reply));
      return returned instanceof Promise ? returned.then(() => reply) : undefined;
    });
    return this;
  }

  async listener(): Promise<RequestListener> {
    await this.#app.ready();
    return (req, res) => this.#app.routing(req, res);
  }
}

function isPlugin(step: Step): step is Plugin {
  return Symbol.for('skip-override') in step;
}

/** As fastify-plugin does. */
function shared(register: (app: FastifyInstance) => unknown): Plugin {
  const plugin: Plugin = (app, _, done) => {
    register(app);
    done();
  };
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true });
}

/** Node's own errors are of another realm than jest's, and Fastify asks with `instanceof`. */
function ofThisRealm(error: unknown): Error {
  return error instanceof Error ? error : Object.assign(new Error((error as Error).message), error);
}

function fastifyCall(request: FastifyRequest, reply: FastifyReply): Call {
  return {
    req: request.raw,
    res: reply.raw,
    params: (request.params ?? {}) as Record<string, string>,
    get lock() {
      return request.lock;
    },
    get locks() {
      return request.locks;
    },
    send: (body, status = 200) => void reply.code(status).send(typeof body === 'number' ? String(body) : body),
    stream: (source) => void reply.send(source),
    sendFile: (path) => void reply.send(createReadStream(path)),
    fail: (error) => void (error === undefined ? reply.callNotFound() : reply.send(ofThisRealm(error))),
    detach: () => {},
  };
}
