// Compiled, never run: an application that has a `lock` of its own on its requests, and tells the types another name for holds.
import type { IncomingMessage } from 'node:http';
import { Router } from 'express';
import type { FastifyRequest } from 'fastify';
import { Hono } from 'hono';
import type { DefaultState } from 'koa';
import type { Hold, Locks } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import * as forFastify from 'reenlock/fastify';
import * as forHono from 'reenlock/hono';
import * as forKoa from 'reenlock/koa';
import * as forNode from 'reenlock/node';

/** What the application calls a lock. */
interface Door {
  isOpen: boolean;
}

declare global {
  interface ReenlockTypes {
    holdName: 'hold';
  }
  namespace Express {
    interface Request {
      lock: Door;
      locks: Door[];
    }
  }
}
declare module 'koa' {
  interface DefaultState {
    lock: Door;
  }
}
declare module 'fastify' {
  interface FastifyRequest {
    lock: Door;
  }
}
declare module 'hono' {
  interface ContextVariableMap {
    lock: Door;
  }
}

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function expectTrue<T extends true>(): T;
declare const locks: Locks;
type All = ReadonlyMap<string, Hold> | undefined;

Router().post('/doors/:id', traceContext({ locks, holdName: 'hold' }), lockOn('door'), (req) => {
  expectTrue<Same<typeof req.lock, Door>>();
  expectTrue<Same<typeof req.locks, Door[]>>();
  expectTrue<Same<typeof req.hold, Hold | undefined>>();
  expectTrue<Same<typeof req.holds, All>>();
});

new Hono().use(forHono.traceContext({ locks, holdName: 'hold' })).get('/', forHono.lockOn('door'), (c) => {
  expectTrue<Same<typeof c.var.lock, Door>>();
  expectTrue<Same<typeof c.var.hold, Hold | undefined>>();
  expectTrue<Same<typeof c.var.holds, All>>();
  return c.text(c.get('hold')?.key ?? '');
});

forKoa.traceContext({ locks, holdName: 'hold' });
expectTrue<Same<DefaultState['lock'], Door>>();
expectTrue<Same<DefaultState['hold'], Hold | undefined>>();
expectTrue<Same<forKoa.LockState['holds'], All>>();

forFastify.traceContext({ locks, holdName: 'hold' });
expectTrue<Same<FastifyRequest['lock'], Door>>();
expectTrue<Same<FastifyRequest['hold'], Hold | undefined>>();

forNode.traceContext({ locks, holdName: 'hold' });
expectTrue<Same<IncomingMessage['hold'], Hold | undefined>>();
// @ts-expect-error holds have the other name
type _None = IncomingMessage['lock'];
// @ts-expect-error a name is text
forNode.traceContext({ holdName: 1 });
