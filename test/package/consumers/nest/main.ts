import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { Controller, Injectable, Module, Param, Post, Req } from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { createLocks, getLock, Locked, MemoryStore } from 'reenlock';
import { type LockedRequest, LockOn, LocksModule } from 'reenlock/nest';

const events: string[] = [];

@Injectable()
class OrderService {
  @Locked((id) => id)
  async take(id: string): Promise<number> {
    events.push('enter');
    const order = getLock(id);
    // The first request stays until the second one is in the queue, or has wrongly come in.
    while (events.length === 1 && (await order.inspect()).waiters.length === 0) await turn();
    events.push('leave');
    return order.holdCount();
  }
}

@Controller('orders')
class OrderController {
  // Found by its type: what the compiler wrote down.
  constructor(private readonly orders: OrderService) {}

  @Post(':id')
  @LockOn(({ params }) => params.id)
  async ship(@Param('id') id: string, @Req() { lock }: LockedRequest): Promise<object> {
    return { holds: await this.orders.take(id), key: lock?.key };
  }

  @Post('above/:id')
  @Locked((id) => id)
  async above(@Param('id') id: string): Promise<object> {
    return { holds: getLock(id).holdCount() };
  }

  @Locked((id) => id)
  @Post('below/:id')
  async below(@Param('id') id: string): Promise<object> {
    return { holds: getLock(id).holdCount() };
  }
}

async function guard(adapter: AbstractHttpAdapter): Promise<void> {
  events.length = 0;

  @Module({
    imports: [
      LocksModule.forRootAsync({ useFactory: async () => ({ locks: createLocks({ store: new MemoryStore() }) }) }),
    ],
    controllers: [OrderController],
    providers: [OrderService],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule, adapter, { logger: ['error', 'warn'] });
  await app.listen(0, '127.0.0.1');
  const url = `${await app.getUrl()}/orders`;
  const post = async (path: string) =>
    (await fetch(`${url}/${path}`, { method: 'POST', headers: { Connection: 'close' } })).json();
  const answers = await Promise.all([post('42'), post('42')]);
  // Beside the decorator of the route, in any order.
  const decorated = [await post('above/43'), await post('below/43')];
  await app.close();

  assert.deepEqual(events, ['enter', 'leave', 'enter', 'leave']);
  assert.deepEqual(answers, Array(2).fill({ holds: 2, key: '42' }));
  assert.deepEqual(decorated, Array(2).fill({ holds: 1 }));
}

async function main(): Promise<void> {
  await guard(new ExpressAdapter());
  await guard(new FastifyAdapter());
  console.log('ok');
}

void main();
