import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type ClientRequest, createServer, get, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import express, { type RequestHandler } from 'express';
import fastify from 'fastify';
import { type Context, Hono } from 'hono';
import Koa, { type Middleware } from 'koa';
import mount from 'koa-mount';
import * as forExpress from 'reenlock/express';
import * as forFastify from 'reenlock/fastify';
import * as forHono from 'reenlock/hono';
import * as forKoa from 'reenlock/koa';
import * as forNest from 'reenlock/nest';
import { matrix } from '../matrix.ts';

/** What `lockBoard` takes on every framework, with what both a request and a context have. */
export type BoardOptions = Omit<forExpress.LockBoardOptions<never>, 'authorize'> & {
  readonly authorize: (request: { headers: IncomingMessage['headers'] }) => unknown;
};

/** A middleware as Connect had it: of helmet, compression and the like. */
export type Above = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

export interface BoardHost {
  readonly name: string;
  /** `lockBoard` itself. */
  lockBoard(options?: object): unknown;
  /** An application with the board at /ops/locks, below `above`, and a 404 that says so for all else. */
  listener(options: BoardOptions, ...above: readonly Above[]): RequestListener | Promise<RequestListener>;
}

const load = createRequire(__filename);

function expressHost(name: string, create: typeof express): BoardHost {
  return {
    name,
    lockBoard: forExpress.lockBoard as BoardHost['lockBoard'],
    listener(options, ...above) {
      const app = create().set('env', 'test');
      for (const each of above) app.use(each as RequestHandler);
      app.use('/ops/locks', forExpress.lockBoard(options as never));
      app.use((_req, res) => void res.status(404).send('not the board'));
      return app;
    },
  };
}

function koaHost(name: string, Application: typeof Koa): BoardHost {
  return {
    name,
    lockBoard: forKoa.lockBoard as BoardHost['lockBoard'],
    listener(options, ...above) {
      const app = new Application();
      app.silent = true;
      for (const each of above) app.use(connected(each));
      app.use(mount('/ops/locks', forKoa.lockBoard(options as never) as Middleware));
      app.use((ctx) => {
        ctx.status = 404;
        ctx.body = 'not the board';
      });
      return app.callback();
    },
  };
}

const fastifyHost: BoardHost = {
  name: 'Fastify 5',
  lockBoard: forFastify.lockBoard as BoardHost['lockBoard'],
  async listener(options, ...above) {
    const app = fastify();
    for (const each of above)
      app.addHook('onRequest', (request, reply, done) => each(request.raw, reply.raw, done as () => void));
    app.register(forFastify.lockBoard(options as never), { prefix: '/ops/locks' });
    app.setNotFoundHandler((_, reply) => void reply.code(404).send('not the board'));
    await app.ready();
    return (req, res) => app.routing(req, res);
  },
};

const honoHost: BoardHost = {
  name: 'Hono 4',
  lockBoard: forHono.lockBoard as BoardHost['lockBoard'],
  listener(options, ...above) {
    const app = new Hono<{ Bindings: HttpBindings }>();
    for (const each of above) {
      app.use(async (c, next) => {
        await passed(each, c.env.incoming, c.env.outgoing);
        await next();
      });
    }
    const authorize = (c: Context): never => options.authorize({ headers: c.req.header() }) as never;
    app.use('/ops/locks/*', forHono.lockBoard({ ...options, authorize }));
    app.all('*', (c) => c.text('not the board', 404));
    return getRequestListener(app.fetch, { overrideGlobalObjects: false });
  },
};

function nestHost(name: string, createAdapter: () => AbstractHttpAdapter): BoardHost {
  return {
    name,
    lockBoard: forNest.lockBoard as BoardHost['lockBoard'],
    async listener(options, ...above) {
      const adapter = createAdapter();
      const app = await NestFactory.create(class Root {}, adapter, { logger: false, bodyParser: false });
      for (const each of above) app.use(each);
      app.use('/ops/locks', forNest.lockBoard(options as never));
      app.use((_req: IncomingMessage, res: ServerResponse) => res.writeHead(404).end('not the board'));
      await app.init();
      if (!(adapter instanceof FastifyAdapter)) return adapter.getInstance();
      const instance = adapter.getInstance();
      await instance.ready();
      return (req, res) => instance.routing(req, res);
    },
  };
}

/** A parser leaves its body where Koa's own parsers do. */
function connected(above: Above): Middleware {
  return async (ctx, next) => {
    await passed(above, ctx.req, ctx.res);
    if ('body' in ctx.req) Object.assign(ctx.request, { body: ctx.req.body });
    await next();
  };
}

function passed(above: Above, req: IncomingMessage, res: ServerResponse): Promise<void> {
  return new Promise((resolve, reject) =>
    above(req, res, (error) => (error === undefined ? resolve() : reject(error))),
  );
}

const nestHosts: readonly BoardHost[] = [
  nestHost('Nest 12 on Express', () => new ExpressAdapter()),
  nestHost('Nest 12 on Fastify', () => new FastifyAdapter()),
];

export const boardHosts: readonly BoardHost[] = matrix(
  [expressHost('Express 5', express), koaHost('Koa 3', Koa), fastifyHost, honoHost],
  () => [
    ...nestHosts,
    expressHost('Express 4', load('express4') as typeof express),
    koaHost('Koa 2', load('koa2') as typeof Koa),
  ],
);

/** A server with a board, and the streams that a test has opened on it. */
export class BoardServer {
  readonly server: Server;
  readonly #streams: EventStream[] = [];

  private constructor(server: Server) {
    this.server = server;
  }

  static async start(listener: RequestListener | Promise<RequestListener>, port = 0): Promise<BoardServer> {
    const server = createServer(await listener).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return new BoardServer(server);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** Opens a stream; resolves once its head has come. */
  async stream(path = '/ops/locks/stream', headers: Record<string, string> = {}): Promise<EventStream> {
    const request = get(this.url(path), { headers, agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const stream = new EventStream(request, response);
    this.#streams.push(stream);
    return stream;
  }

  async stop(): Promise<void> {
    for (const stream of this.#streams) stream.close();
    this.server.close();
    this.server.closeAllConnections();
    if (this.server.listening) await once(this.server, 'close');
  }
}

/** The messages of a stream, in order. */
export class EventStream {
  readonly response: IncomingMessage;
  readonly ended: Promise<unknown>;
  readonly #request: ClientRequest;
  readonly #messages: { event: string; data: BoardMessage }[] = [];
  #text = '';

  constructor(request: ClientRequest, response: IncomingMessage) {
    this.#request = request;
    this.response = response;
    this.ended = new Promise((resolve) => response.once('close', resolve));
    // A test that closes it wants no error.
    request.on('error', () => {});
    response.on('error', () => {});
    response.setEncoding('utf8').on('data', (chunk: string) => this.#take(chunk));
  }

  /** What came so far and was not taken. */
  get text(): string {
    return this.#text;
  }

  /** The next message of this event that fits; those before it are gone. */
  async next(event: string, fits: (data: BoardMessage) => boolean = () => true): Promise<BoardMessage> {
    while (true) {
      for (let first = this.#messages.shift(); first !== undefined; first = this.#messages.shift()) {
        if (first.event === event && fits(first.data)) return first.data;
      }
      if (this.response.closed) throw new Error(`The stream ended without ${event}: ${this.#text}`);
      await Promise.race([once(this.response, 'data'), this.ended]);
    }
  }

  /** Gathers updates until the rows are as wanted. */
  async until(fits: (rows: ReadonlyMap<string, Row>) => boolean): Promise<ReadonlyMap<string, Row>> {
    const rows = new Map<string, Row>();
    while (true) {
      const { rows: set = [], gone = [] } = await this.next('update');
      for (const row of set) rows.set(row.id, row);
      for (const id of gone) rows.delete(id);
      if (fits(rows)) return rows;
    }
  }

  close(): void {
    this.#request.destroy();
  }

  #take(chunk: string): void {
    const parts = (this.#text + chunk).split('\n\n');
    this.#text = parts.pop() ?? '';
    for (const part of parts) {
      const [, event = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? [];
      this.#messages.push({ event, data: JSON.parse(data) as BoardMessage });
    }
  }
}

/** A row as the page gets it. */
export interface Row {
  readonly id: string;
  readonly key: string;
  readonly category?: string;
  readonly holder?: { traceId?: string; branch: string; mode: string; fence: number; sinceMs: number; endMs: number };
  readonly holds: number;
  readonly waiters: number;
  readonly next: readonly { owner: string }[];
  readonly waitingSinceMs?: number;
}

/** What any message may say. */
export interface BoardMessage {
  readonly name?: string;
  readonly mayForceRelease?: boolean;
  readonly reason?: string;
  readonly nowMs?: number;
  readonly isFirst?: boolean;
  readonly rows?: readonly Row[];
  readonly gone?: readonly string[];
  readonly status?: {
    readonly scanned: number;
    readonly total?: number;
    readonly isComplete: boolean;
    readonly isFull: boolean;
    readonly canList: boolean;
    readonly failedMs?: number;
  };
}
