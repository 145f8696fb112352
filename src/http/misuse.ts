import type { ServerResponse } from 'node:http';
import { LockConfigError } from '../core/model/errors/mistakes.ts';
import { describe } from '../core/model/validate.ts';

/** The frameworks whose calls can be recognized. */
type Framework = 'node' | 'express' | 'koa' | 'fastify' | 'hono';

const names: Readonly<Record<Framework, string>> = {
  node: 'plain Node',
  express: 'Express',
  koa: 'Koa',
  fastify: 'Fastify',
  hono: 'Hono',
};

const byUse = 'with `app.use`';
const forSockets = 'for a WebSocket, lock in `runInTrace`';

type NextFunction = (error?: unknown) => void;

/** The parameters of an adapter's middleware, how to mount it, the name of its response, and a hint for calls without one. */
const shapes: Readonly<Record<'connect' | 'koa' | 'fastify' | 'hono', Shape>> = {
  connect: {
    parameters: '(req, res, next)',
    mount: byUse,
    response: 'res',
    callers: ['express', 'node'],
    otherwise: forSockets,
  },
  koa: { parameters: '(ctx, next)', mount: byUse, response: 'ctx.res', callers: ['koa'], otherwise: forSockets },
  fastify: {
    parameters: '(request, reply, done)',
    mount: 'as a `preHandler` hook',
    response: 'reply.raw',
    callers: ['fastify'],
    otherwise: forSockets,
  },
  hono: {
    parameters: '(c, next)',
    mount: byUse,
    response: 'c.env.outgoing',
    callers: ['hono'],
    otherwise:
      'serve the board with @hono/node-server, or by `npx reenlock board`; for a WebSocket, lock in `runInTrace`',
  },
};

interface Shape {
  readonly parameters: string;
  readonly mount: string;
  readonly response: string;
  readonly callers: readonly Framework[];
  readonly otherwise: string;
}

/**
 * Throws `LockConfigError` if a middleware was not called by its framework: `response` is no response of `node:http`, or
 * `next` no function. Another framework may have called it, because all adapters export the same names. Or a WebSocket library:
 * then there is no response, or a request instead. `first` and `second` are the first arguments.
 */
export function checkCall(
  own: keyof typeof shapes,
  first: unknown,
  second: unknown,
  response: unknown,
  next: unknown,
): void {
  if (typeof next === 'function' && isResponse(response)) return;
  const shape = shapes[own];
  const expected = `Expected a middleware to be called with \`${shape.parameters}\``;
  const caller = callerOf(first, second);
  if (caller !== undefined && !shape.callers.includes(caller)) {
    throw new LockConfigError(
      `${expected}, got a call by ${names[caller]}: import it from \`reenlock/${caller}\` instead`,
    );
  }
  if (typeof next !== 'function') {
    throw new LockConfigError(`${expected}, got ${describe(next)} as \`next\`: mount it ${shape.mount}`);
  }
  throw new LockConfigError(
    `${expected} and a response of \`node:http\`, got ${describe(response)} as \`${shape.response}\`: ${shape.otherwise}`,
  );
}

/**
 * Checks a call of a middleware that continues with `next`. Returns whether it is right. The error goes to `next`, and is thrown
 * only if there is none: WebSocket libraries call middleware in a listener of the server.
 */
export function isRightCall(
  own: keyof typeof shapes,
  first: unknown,
  second: unknown,
  response: unknown,
  next: NextFunction,
): boolean {
  try {
    checkCall(own, first, second, response, next);
    return true;
  } catch (error) {
    if (typeof next !== 'function') throw error;
    next(error);
    return false;
  }
}

/**
 * Whether a response can be watched. Engine.IO calls middleware for each WebSocket with an object that has some of the methods
 * for headers, and in older versions no events; simulated responses may lack them, too.
 */
export function isWatchable(res: ServerResponse): boolean {
  const { on, hasHeader } = res as Partial<ServerResponse>;
  return isFunction(on) && isFunction(hasHeader);
}

/**
 * Throws `LockConfigError` if a factory was mounted instead of the middleware that it returns: then its first argument is a
 * request, a context that has one, or the instance that Fastify gives a plugin.
 */
export function checkFactoryCall(call: string, first: unknown): void {
  if (!isObject(first)) return;
  const isRequest = isObject(first.headers) && typeof first.method === 'string';
  const isContext = isObject(first.req) && 'res' in first;
  const isInstance = isFunction(first.addHook);
  if (!isRequest && !isContext && !isInstance) return;
  const name = call.replace(/\(.*/, '');
  const came = isInstance ? 'an instance of Fastify' : 'a request';
  throw new LockConfigError(
    `Expected \`${call}\` to be mounted, got \`${name}\` itself, which was called with ${came}: call it first`,
  );
}

/** Throws `LockConfigError` if `sendProblem` was called without a response, to get a handler or as middleware. */
export function checkProblemCall(response: unknown, usage: string): void {
  if (isObject(response)) return;
  throw new LockConfigError(
    `Expected \`sendProblem\` to be called with an error and its response, got ${describe(response)} as the response. Did you mean \`${usage}\`, without a call?`,
  );
}

function callerOf(first: unknown, second: unknown): Framework | undefined {
  if (!isObject(first)) return undefined;
  // A hook of Fastify gets its request and reply, a plugin its instance. Its request is not Node's: it has that in `raw`.
  if (isFunction(first.addHook) || (isObject(first.raw) && isObject(second) && isObject(second.raw))) return 'fastify';
  if (isObject(first.req)) return isObject(first.req.raw) ? 'hono' : 'koa';
  if (!isResponse(second)) return undefined;
  return 'app' in first ? 'express' : 'node';
}

function isResponse(value: unknown): boolean {
  return typeof (value as Partial<ServerResponse> | null | undefined)?.setHeader === 'function';
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
