import { createRequire } from 'node:module';
import express5 from 'express';
import Koa3, { type Middleware } from 'koa';
import * as expressApp from '../../support/http/express-app.ts';
import type { Framework } from '../../support/http/frameworks.ts';
import * as koaApp from '../../support/http/koa-app.ts';

export type Express = typeof express5;
export type Koa = typeof Koa3;
export type Compose = (middleware: readonly Middleware[]) => Middleware;

// The aliases of the other major versions have no types of their own.
const load = createRequire(__filename);
const express4 = load('express4') as Express;
const koa2 = load('koa2') as Koa;

/** Runs one body of tests on every Express, which comes along as it is. */
export function describeExpress(name: string, body: (framework: Framework, express: Express) => void): void {
  describe.each([
    [expressApp.express5.name, expressApp.express5, express5],
    [expressApp.express4.name, expressApp.express4, express4],
  ] as const)(`${name} (%s)`, (_, framework, express) => body(framework, express));
}

/** Runs one body of tests on every Koa, which comes along as it is, with its own `koa-compose`. */
export function describeKoa(name: string, body: (framework: Framework, Koa: Koa, compose: Compose) => void): void {
  describe.each([
    [koaApp.koa3.name, koaApp.koa3, Koa3, 'koa'],
    [koaApp.koa2.name, koaApp.koa2, koa2, 'koa2'],
  ] as const)(`${name} (%s)`, (_, framework, Koa, from) =>
    body(framework, Koa, createRequire(load.resolve(from))('koa-compose') as Compose),
  );
}
