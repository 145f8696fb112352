import { createRequire } from 'node:module';
import express5 from 'express';
import Koa3, { type Middleware } from 'koa';
import { matrix } from '../matrix.ts';
import * as expressApp from './express-app.ts';
import type { Framework } from './frameworks.ts';
import * as koaApp from './koa-app.ts';
import { ServerStage } from './server-stage.ts';

export type Express = typeof express5;
export type Koa = typeof Koa3;
export type Compose = (middleware: readonly Middleware[]) => Middleware;

// The aliases of the other major versions have no types of their own.
const load = createRequire(__filename);
const express4 = (): Express => load('express4') as Express;

/** Every Express by name, as it is: the newest one, and those of `MATRIX=all`. */
export const expresses: readonly (readonly [name: string, express: Express])[] = matrix(
  [['Express 5', express5]],
  () => [['Express 4', express4()]],
);

/** A copy of an Express that no other code has. */
export function copyOf(create: Express): Express {
  let copy = create;
  jest.isolateModules(() => {
    copy = jest.requireActual(create === express5 ? 'express' : 'express4');
  });
  return copy;
}

/** Runs one body of tests on every Express, which comes along as it is, and ends its stages after each of them. */
export function describeExpress(name: string, body: (framework: Framework, express: Express) => void): void {
  type Row = readonly [framework: Framework, express: Express];
  const rows = matrix<Row>([[expressApp.express5, express5]], () => [[expressApp.express4(), express4()]]);
  for (const [framework, express] of rows)
    describe(`${name} (${framework.name})`, () => {
      body(framework, express);
      afterEach(ServerStage.endAll);
    });
}

/** As `describeExpress`, on every Koa, with its own `koa-compose`. */
export function describeKoa(name: string, body: (framework: Framework, Koa: Koa, compose: Compose) => void): void {
  type Row = readonly [framework: Framework, Koa: Koa, from: string];
  const rows = matrix<Row>([[koaApp.koa3, Koa3, 'koa']], () => [[koaApp.koa2(), load('koa2') as Koa, 'koa2']]);
  for (const [framework, Koa, from] of rows) {
    const compose = createRequire(load.resolve(from))('koa-compose') as Compose;
    describe(`${name} (${framework.name})`, () => {
      body(framework, Koa, compose);
      afterEach(ServerStage.endAll);
    });
  }
}
