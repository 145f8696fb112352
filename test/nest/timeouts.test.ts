import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Param,
  type PipeTransform,
  RequestTimeoutException,
  SetMetadata,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory, Reflector } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { getLock } from 'reenlock';
import { LockOn, LocksModule } from 'reenlock/nest';
import { createTestLocks, type TestLocks } from 'reenlock/testing';
import { catchError, from, NEVER, type Observable, raceWith, throwError } from 'rxjs';
import { type Gate, gate } from '../support/gate.ts';
import { pathOf } from '../support/path-of.ts';
import { until } from '../support/until.ts';

let locks: TestLocks;
let app: INestApplication;
let limit: Gate;
let inside: Gate;
let work: Gate;
let seen: unknown[];
beforeEach(() => {
  locks = createTestLocks();
  [limit, inside, work] = [gate(), gate(), gate()];
  seen = [];
});
afterEach(async () => {
  work.open();
  await locks.end();
  await app.close();
});

/** Nest's own example of an interceptor, with a limit that a test reaches. */
const timeout = {
  intercept: (_: ExecutionContext, next: CallHandler): Observable<unknown> =>
    next.handle().pipe(
      raceWith(from(limit.then(() => Promise.reject(new Error('Too late'))))),
      catchError(() => throwError(() => new RequestTimeoutException())),
    ),
};

async function transfer(): Promise<string> {
  inside.open();
  await work;
  // Re-enters: the work is not over.
  await getLock('k').run((hold) => void seen.push(`done by ${pathOf(hold)}`));
  return 'done';
}

@Controller('above')
@UseInterceptors(timeout)
class Above {
  @Get()
  @LockOn('k')
  transfer(): Promise<string> {
    return transfer();
  }
}

@Controller('below')
@LockOn('k')
class Below {
  @Get()
  @UseInterceptors(timeout)
  transfer(): Promise<string> {
    return transfer();
  }
}

abstract class Transfers {
  @Get()
  transfer(): Promise<string> {
    return transfer();
  }
}

@Controller('inherited')
@LockOn('k')
@UseInterceptors(timeout)
class Inherited extends Transfers {}

@Controller('failing')
@UseInterceptors(timeout)
class Failing {
  @LockOn('k')
  @Get()
  async transfer(): Promise<never> {
    throw new Error(await transfer());
  }
}

class SlowPipe implements PipeTransform {
  async transform(value: unknown): Promise<unknown> {
    inside.open();
    await work;
    return value;
  }
}

@Controller('piped')
@UseInterceptors(timeout)
class Piped {
  @Get(':id')
  @LockOn('k')
  transfer(@Param('id', SlowPipe) id: string): string {
    seen.push(`done with ${id}`);
    return id;
  }
}

@Controller('observed')
@UseInterceptors(timeout)
class Observed {
  @Get()
  @LockOn('k')
  transfer(): Observable<never> {
    inside.open();
    return NEVER;
  }
}

describe.each<readonly [string, () => AbstractHttpAdapter]>([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('A timeout interceptor of Nest on %s', (_, createAdapter) => {
  async function start(...controllers: Type[]): Promise<string> {
    const root = { module: class Root {}, imports: [LocksModule.forRoot({ locks, trust: 'all' })], controllers };
    app = await NestFactory.create(root, createAdapter(), { logger: false });
    await app.listen(0, '127.0.0.1');
    return app.getUrl();
  }

  async function holders(): Promise<readonly string[]> {
    return (await locks.inspect('k')).holds.map((each) => pathOf(each));
  }

  const released = (): Promise<unknown> => until(holders, ({ length }) => length === 0);

  it.each<[string, Type]>([
    ['above the guard of a route', Above],
    ['below the guard of a controller', Below],
    ['on a controller whose guarded route is inherited', Inherited],
    ['above a handler that fails later', Failing],
  ])(
    '[nest-timeout-01] A timeout %s leaves the lock with the handler until it has settled',
    async (_place, controller) => {
      const path = Reflect.getMetadata('path', controller) as string;
      const response = fetch(`${await start(controller)}/${path}`, { headers: { 'X-Trace-Id': 'first' } });
      await inside;
      limit.open();
      expect((await response).status).toBe(408);
      expect(await holders()).toEqual(['first']);
      work.open();
      await released();
      expect(seen).toEqual(['done by first']);
    },
  );

  it('[nest-timeout-02] A handler whose pipes have outlasted the timeout never runs', async () => {
    const response = fetch(`${await start(Piped)}/piped/42`);
    await inside;
    limit.open();
    expect((await response).status).toBe(408);
    await released();
    work.open();
    expect((await fetch(`${await app.getUrl()}/nothing`)).status).toBe(404);
    expect(seen).toEqual([]);
  });

  it('[nest-timeout-03] A timeout of an Observable releases the lock: it has ended the work', async () => {
    const response = fetch(`${await start(Observed)}/observed`);
    await inside;
    limit.open();
    expect((await response).status).toBe(408);
    await released();
  });
});

describe('The method of a guard', () => {
  it('A guarded method keeps its name, its parameters and its metadata', async () => {
    app = await NestFactory.create(class Root {}, new ExpressAdapter(), { logger: false });
    class Marked {
      @LockOn('k')
      @SetMetadata('below', 1)
      ship(first: string, second: string): string {
        return first + second;
      }
    }
    const method = Marked.prototype.ship;
    expect([method.name, method.length, method.call(null, 'a', 'b')]).toEqual(['ship', 2, 'ab']);
    expect(new Reflector().get('below', method)).toBe(1);
  });
});
