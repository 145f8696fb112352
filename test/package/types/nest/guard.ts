// Compiled, never run: what must compile does, and each @ts-expect-error marks what must not.
import type { IncomingMessage } from 'node:http';
import { Controller, type ExecutionContext, Get, Inject, Module, Param, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import type { FastifyRequest } from 'fastify';
import type { Hold, Locks } from 'reenlock';
import { LOCKS, type LockedRequest, LockOn, LocksModule, lockBoard, traceContext } from 'reenlock/nest';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function expectTrue<T extends true>(): void;
declare const locks: Locks;

@Controller('orders')
@LockOn('all')
export class Orders {
  readonly locks: Locks;

  constructor(@Inject(LOCKS) injected: Locks) {
    this.locks = injected;
  }

  @Post(':id')
  @LockOn(({ params }) => params.id)
  async ship(@Param('id') id: string, @Req() { lock, locks: all }: LockedRequest): Promise<string> {
    expectTrue<Same<typeof lock, Hold | undefined>>();
    expectTrue<Same<typeof all, ReadonlyMap<string, Hold> | undefined>>();
    return id;
  }

  @Get()
  @LockOn((request: Request) => request.ip, { skip: (request) => request.xhr })
  onExpress(@Req() request: Request & LockedRequest): number | undefined {
    return request.lock?.fence;
  }

  @Get('fastify')
  @LockOn((request: FastifyRequest, context) => {
    expectTrue<Same<typeof context, ExecutionContext>>();
    return request.id;
  })
  onFastify(): void {}

  @LockOn('k', { waitMs: 10, statusCode: 409, releaseOn: 'close', handler: ({ code }) => ({ code }) })
  options(): void {}

  @LockOn(async ({ body }) => (body as { id: string }).id)
  later(): void {}

  // @ts-expect-error a key is text or a number
  @LockOn(({ headers }) => headers)
  wrongKey(): void {}

  // @ts-expect-error there is no such option
  @LockOn('k', { wait: 1 })
  wrongOption(): void {}
}

@Module({
  imports: [
    LocksModule.forRoot({ locks, trust: 'all' }),
    LocksModule.forRootAsync({ inject: ['a'], useFactory: async () => ({ locks }) }),
    // @ts-expect-error an application has locks
    LocksModule.forRoot({ trust: 'all' }),
  ],
  controllers: [Orders],
})
export class Root {}

traceContext({ locks });
lockBoard({ locks, authorize: (request: IncomingMessage) => ({ name: String(request.headers.user) }) });
