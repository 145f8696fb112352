import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  HttpException,
  type INestApplication,
  type INestApplicationContext,
  Injectable,
} from '@nestjs/common';
import { APP_FILTER, HttpAdapterHost, NestFactory } from '@nestjs/core';
import {
  type ClientProxy,
  ClientProxyFactory,
  MessagePattern,
  type MicroserviceOptions,
  Transport,
} from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { currentTrace, getLock, isLockError, lock, runInTrace } from 'reenlock';
import { LockOn, LocksModule, RunInTrace } from 'reenlock/nest';
import { createTestLocks, type TestLocks } from 'reenlock/testing';
import { lastValueFrom, of } from 'rxjs';
import { LockErrorFilter } from '../../src/nest/error-filter.ts';
import { pathOf } from '../support/path-of.ts';
import { freePort } from '../support/processes/free-port.ts';

let locks: TestLocks;
let app: INestApplication | INestApplicationContext | undefined;
let client: ClientProxy | undefined;
beforeEach(() => {
  locks = createTestLocks();
});
afterEach(async () => {
  await client?.close();
  await locks.end();
  await app?.close();
  [app, client] = [undefined, undefined];
});

@Controller()
class Messages {
  @MessagePattern('ship')
  @RunInTrace()
  async ship(key: string): Promise<object> {
    const held = await lock.acquire(key, { waitMs: 0 });
    // Re-enters; the rest is released at the end of the method.
    return getLock(key).run((inner) => ({
      isSame: pathOf(inner) === pathOf(held),
      hasEnded: currentTrace()?.hasEnded,
    }));
  }

  @RunInTrace()
  @MessagePattern('outside')
  outside(): object {
    return of('an Observable');
  }
}

const root = (more: object = {}) => ({
  module: class Root {},
  imports: [LocksModule.forRoot({ locks })],
  controllers: [Messages],
  ...more,
});

async function send(pattern: string, data: unknown): Promise<unknown> {
  return lastValueFrom((client as ClientProxy).send(pattern, data)).catch((error: unknown) => ({ error }));
}

async function startMicroservice(options: MicroserviceOptions): Promise<INestApplicationContext> {
  const service = await NestFactory.createMicroservice<MicroserviceOptions>(root(), { ...options, logger: false });
  await service.listen();
  return service;
}

async function startHybrid(options: MicroserviceOptions): Promise<INestApplicationContext> {
  const hybrid = await NestFactory.create(root(), new ExpressAdapter(), { logger: false });
  hybrid.connectMicroservice(options, { inheritAppConfig: true });
  await hybrid.startAllMicroservices();
  return hybrid;
}

describe.each([
  ['a microservice', startMicroservice],
  ['a hybrid application', startHybrid],
])('A message handler of %s', (_, start) => {
  beforeEach(async () => {
    const options = { host: '127.0.0.1', port: await freePort() };
    app = await start({ transport: Transport.TCP, options });
    client = ClientProxyFactory.create({ transport: Transport.TCP, options });
  });

  it('[nest-message-01] A message handler with `@RunInTrace` runs in a scope on the locks of the module', async () => {
    expect(await send('ship', 'k')).toEqual({ isSame: true, hasEnded: false });
    expect((await locks.inspect('k')).holds).toEqual([]);
  });

  it('[nest-message-02] A refused lock in a message handler is the reply to its message', async () => {
    await runInTrace(
      () =>
        lock.run('k', async () => {
          expect(await send('ship', 'k')).toEqual({
            error: expect.objectContaining({ status: 423, code: 'ERR_LOCK_TIMEOUT', message: expect.any(String) }),
          });
        }),
      { locks },
    );
  });

  it('[nest-message-03] A method with `@RunInTrace` that returns an Observable is an error', async () => {
    expect(await send('outside', '')).toEqual({ error: expect.objectContaining({ code: 'ERR_LOCK_CONFIG' }) });
  });
});

describe('A method with `@RunInTrace`', () => {
  @Injectable()
  class Jobs {
    @RunInTrace()
    async nightly(): Promise<unknown> {
      return lock.run('k', pathOf);
    }
  }

  it('[nest-message-04] A method with `@RunInTrace` of any provider runs in a scope, which an outer scope gives its trace id', async () => {
    app = await NestFactory.createApplicationContext(root({ providers: [Jobs], controllers: [] }), { logger: false });
    const jobs = app.get(Jobs);
    expect(await jobs.nightly()).toEqual(expect.any(String));
    expect(await runInTrace(() => jobs.nightly(), { locks, traceId: 'outer' })).toMatch(/^outer\//);
  });

  it('A method with `@RunInTrace` on an instance that Nest did not create is an error', async () => {
    await expect(new Jobs().nightly()).rejects.toMatchObject({ code: 'ERR_LOCK_CONFIG' });
  });
});

describe('A refused lock in a gateway', () => {
  it('A refused lock in a gateway is sent to its client as an exception', async () => {
    const emit = jest.fn();
    const host = {
      getType: () => 'ws',
      switchToWs: () => ({ getClient: () => ({ emit }) }),
    } as unknown as ArgumentsHost;
    const error: unknown = await lock.acquire('').catch((reason: unknown) => reason);
    if (!isLockError(error)) throw error;
    new LockErrorFilter().catch(error, host);
    expect(emit.mock.calls).toEqual([['exception', expect.objectContaining({ code: error.code })]]);
  });
});

describe('A filter that catches everything', () => {
  @Catch()
  class CatchAll implements ExceptionFilter {
    catch(error: unknown, host: ArgumentsHost): void {
      const { httpAdapter } = (app as INestApplication).get(HttpAdapterHost);
      httpAdapter.reply(host.getArgByIndex(1), 'caught', error instanceof HttpException ? error.getStatus() : 500);
    }
  }

  @Controller()
  class Guarded {
    @Get('busy')
    @LockOn('k', { waitMs: 0 })
    busy(): string {
      return 'in';
    }

    @Get('broken')
    broken(): never {
      throw new Error('own trouble');
    }
  }

  it('[nest-message-05] A filter of APP_FILTER in the root module that catches everything leaves lock errors to the module', async () => {
    const providers = [{ provide: APP_FILTER, useClass: CatchAll }];
    const http = await NestFactory.create(root({ controllers: [Guarded], providers }), new ExpressAdapter(), {
      logger: false,
    });
    app = http;
    await http.listen(0, '127.0.0.1');
    const url = await http.getUrl();
    await runInTrace(
      () =>
        lock.run('k', async () => {
          const busy = await fetch(`${url}/busy`);
          expect([busy.status, busy.headers.get('retry-after')]).toEqual([423, expect.any(String)]);
        }),
      { locks },
    );
    expect((await fetch(`${url}/broken`)).status).toBe(500);
  });
});
