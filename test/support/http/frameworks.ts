import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Readable } from 'node:stream';
import type { Hold, LockError, LockKeys } from 'reenlock';
import type { GuardOptions as ExpressGuardOptions, TraceContextOptions } from 'reenlock/express';
import { matrix } from '../matrix.ts';
import { bare } from './bare-app.ts';
import { express4, express5 } from './express-app.ts';
import { fastify5 } from './fastify-app.ts';
import { hono4 } from './hono-app.ts';
import { koa2, koa3 } from './koa-app.ts';
import { ServerStage } from './server-stage.ts';

/** One request, as a handler sees it on every framework. */
export interface Call {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly params: Readonly<Record<string, string>>;
  /** `req.lock` or `ctx.state.lock`. */
  readonly lock: Hold | undefined;
  /** `req.locks` or `ctx.state.locks`. */
  readonly locks: ReadonlyMap<string, Hold> | undefined;
  /** Answers in the framework's own way. */
  send(body: unknown, status?: number): void;
  /** Answers with a stream: `pipe`, or a stream as `ctx.body`. */
  stream(source: Readable): void;
  /** Answers with a file: `res.sendFile`, or a file's stream as `ctx.body`. */
  sendFile(path: string): void;
  /** `next(error)`, or a throw. */
  fail(error: unknown): void;
  /** The handler answers by itself, whenever it likes: `ctx.respond = false`; Express has nothing to be told. */
  detach(): void;
}

export type Handler = (call: Call) => unknown;

/** A middleware of the framework that made it. */
export type Middleware = (...args: never[]) => unknown;

export interface GuardOptions extends Omit<ExpressGuardOptions, 'skip' | 'handler'> {
  readonly skip?: (call: Call) => boolean | PromiseLike<boolean>;
  /** `'problem'` is the framework's `sendProblem`. */
  readonly handler?: ((error: LockError, call: Call) => unknown) | 'problem';
}

export interface Framework {
  readonly name: string;
  /** Its subpath of the package. */
  readonly adapter: 'node' | 'express' | 'koa' | 'fastify' | 'hono' | 'nest';
  /** How middleware goes on: it calls `next`, or it awaits what `next` returns. */
  readonly style: 'callback' | 'promise';
  /** Whether a handler's promise is a part of the request's work. */
  readonly awaitsHandlers: boolean;
  /** Whether the framework ends the response of a handler that has settled. */
  readonly endsResponses: boolean;
  /** Whether a handler's rejection is answered. Express 4 never sees it. */
  readonly answersRejections: boolean;
  traceContext(options?: TraceContextOptions): Middleware;
  lockOn(key: string | ((call: Call) => LockKeys | PromiseLike<LockKeys>), options?: GuardOptions): Middleware;
  /** Middleware of the application's own; `next` is what the framework gave. */
  middleware(run: (call: Call, next: () => unknown) => unknown): Middleware;
  /** cls-rtracer's own middleware, beside ours. */
  rtracer(): Middleware;
  /** Reads JSON bodies into `call.req.body`. */
  json(): Middleware;
  app(): App;
}

/** An application under construction; middleware and routes run in the order of these calls. */
export interface App {
  use(...middleware: readonly Middleware[]): this;
  /** All methods of a path; the last step is the handler. */
  route(path: string, ...steps: readonly [...Middleware[], Handler]): this;
  /** A sub-application below a path. */
  mount(path: string, build: (sub: App) => void): this;
  /** Error middleware: last in Express, first in Koa. */
  onError(handler: (error: Partial<LockError>, call: Call) => void): this;
  listener(): RequestListener | Promise<RequestListener>;
}

const load = createRequire(__filename);

/** Set in the jest project that runs on another major version of Nest. */
declare const onlyNest: true | undefined;
const isOnlyNest = typeof onlyNest !== 'undefined';

/** Loaded only where it runs: that takes as long as for all others together. */
function onNest(): readonly Framework[] {
  const { nestExpress, nestFastify } = load('./nest-app.ts') as typeof import('./nest-app.ts');
  return [nestExpress, nestFastify];
}

export function nestOnFastify(): Framework {
  return onNest()[1] as Framework;
}

/**
 * Runs one body of tests on every framework, and ends the stages of each test: on the newest major versions, and with
 * `MATRIX=all` on the older ones and on Nest, which stands on Express and Fastify and has tests of its own.
 */
export function describeFrameworks(name: string, body: (framework: Framework) => void): void {
  describeEach(
    name,
    matrix([bare, express5, koa3, fastify5, hono4], () => [...onNest(), express4(), koa2()]),
    body,
  );
}

/**
 * For what does not depend on the framework: one of each style, and with `MATRIX=all` every framework in its newest major
 * version.
 */
export function describeStyles(name: string, body: (framework: Framework) => void): void {
  describeEach(
    name,
    matrix([express5, koa3], () => [bare, fastify5, hono4, ...onNest()]),
    body,
  );
}

function describeEach(name: string, frameworks: readonly Framework[], body: (framework: Framework) => void): void {
  const rows = isOnlyNest ? onNest() : frameworks;
  describe.each(rows.map((framework) => [framework.name, framework] as const))(`${name} (%s)`, (_, framework) => {
    body(framework);
    afterEach(ServerStage.endAll);
  });
}
