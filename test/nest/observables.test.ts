import { once } from 'node:events';
import { get } from 'node:http';
import { Controller, Get, type INestApplication } from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { currentTrace } from 'reenlock';
import { LockOn, LocksModule } from 'reenlock/nest';
import { createTestLocks, type TestLocks } from 'reenlock/testing';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { type Gate, gate } from '../support/gate.ts';
import { until } from '../support/until.ts';

const graceMs = 1_000;
let locks: TestLocks;
let app: INestApplication;
let inside: Gate;
let work: Gate;

function transfer(): Observable<string> {
  const gone = once(currentTrace()?.signal as AbortSignal, 'abort');
  return from(
    (async () => {
      inside.open();
      await gone;
      await work;
      return 'done';
    })(),
  );
}

@Controller()
@LockOn('k')
class Transfers {
  @Get('observable')
  observable(): Observable<string> {
    return transfer();
  }

  @Get('promise')
  promise(): Promise<string> {
    return lastValueFrom(transfer());
  }
}

describe.each<readonly [string, () => AbstractHttpAdapter]>([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('A handler of Nest on %s whose client disconnects', (_, createAdapter) => {
  beforeEach(async () => {
    locks = createTestLocks({ clock: 'manual', abortGraceMs: graceMs });
    [inside, work] = [gate(), gate()];
    const root = { module: class Root {}, imports: [LocksModule.forRoot({ locks })], controllers: [Transfers] };
    app = await NestFactory.create(root, createAdapter(), { logger: false });
    await app.listen(0, '127.0.0.1');
  });
  afterEach(async () => {
    await locks.end();
    await app.close();
  });

  const holders = async (): Promise<number> => (await locks.inspect('k')).holds.length;
  const released = (): Promise<unknown> => until(holders, (count) => count === 0);

  const connections = (): Promise<number> =>
    new Promise((resolve) => app.getHttpServer().getConnections((_: unknown, count: number) => resolve(count)));

  /** Requests a route, and disconnects once its handler works. */
  async function leave(route: string): Promise<void> {
    const request = get(`${await app.getUrl()}/${route}`).on('error', () => {});
    await inside;
    request.destroy();
    await until(connections, (count) => count === 0);
  }

  it('[nest-observable-01] The lock of an Observable lasts until the grace: Nest unsubscribes, which stops no promise in it, and never responds', async () => {
    await leave('observable');
    await locks.clock.advance(graceMs - 1);
    work.open();
    await new Promise(setImmediate);
    expect(await holders()).toBe(1);
    await locks.clock.advance(1);
    await released();
    expect(locks.history().map(({ event }) => event)).toContain('lost');
  });

  it('[nest-observable-02] The lock of an Observable that is returned as a promise is released when that has settled', async () => {
    await leave('promise');
    work.open();
    await released();
    expect(locks.history().map(({ event }) => event)).not.toContain('lost');
  });
});
