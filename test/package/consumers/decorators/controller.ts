// Controllers and services as Nest has them: found, built and called by what their decorators left.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import express from 'express';
import { createLocks, getLock, Locked, MemoryStore } from 'reenlock';
import { traceContext } from 'reenlock/express';
import { defineMetadata, getMetadata } from './metadata.js';

type Class<T = object> = new (...args: never[]) => T;
type Method = (...args: unknown[]) => Promise<unknown>;

function Injectable() {
  return (_target: Class): void => {};
}

/** The route is left on the method, as Nest does. */
function Post(path: string) {
  return (_target: object, _name: string, descriptor: PropertyDescriptor): void =>
    defineMetadata('path', path, descriptor.value);
}

function Param(param: string) {
  return (target: object, name: string, index: number): void => {
    const params = [...((getMetadata('params', target.constructor, name) as string[] | undefined) ?? [])];
    params[index] = param;
    defineMetadata('params', params, target.constructor, name);
  };
}

function build<T>(target: Class<T>): T {
  const dependencies = (getMetadata('design:paramtypes', target) ?? []) as Class[];
  return new target(...(dependencies.map(build) as never[]));
}

const events: string[] = [];

@Injectable()
class OrderService {
  @Locked((id) => `order:${id}`)
  async take(id: string): Promise<number> {
    events.push('enter');
    const order = getLock(`order:${id}`);
    // The first request stays until the second one is in the queue, or has wrongly come in.
    while (events.length === 1 && (await order.inspect()).waiters.length === 0) await turn();
    events.push('leave');
    return order.holdCount();
  }
}

@Injectable()
class OrderController {
  constructor(private readonly orders: OrderService) {}

  @Post('/orders/:id')
  @Locked((id) => `order:${id}`)
  async above(@Param('id') id: string): Promise<number> {
    return this.orders.take(id);
  }

  @Locked((_shop, id) => `order:${id}`)
  @Post('/shops/:shop/orders/:id')
  async below(@Param('shop') shop: string, @Param('id') id: string): Promise<string> {
    return `${shop}: ${getLock(`order:${id}`).holdCount()}`;
  }
}

function routerOf(controller: object): express.Router {
  const router = express.Router();
  const prototype = Object.getPrototypeOf(controller) as Record<string, Method>;
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const method = prototype[name] as Method;
    const path = getMetadata('path', method);
    const params = getMetadata('params', prototype.constructor as object, name) as string[];
    if (typeof path !== 'string') continue;
    router.post(path, async (req, res) => {
      res.json(
        await method.apply(
          controller,
          params.map((param) => req.params[param]),
        ),
      );
    });
  }
  return router;
}

async function main(): Promise<void> {
  const locks = createLocks({ store: new MemoryStore() });
  const app = express().use(traceContext({ locks }), routerOf(build(OrderController)));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const post = async (path: string) => (await fetch(`${url}${path}`, { method: 'POST' })).json();
  const answers = await Promise.all([post('/orders/42'), post('/orders/42')]);
  const below = await post('/shops/north/orders/42');
  server.close();
  server.closeAllConnections();
  await locks.close();

  assert.deepEqual(events, ['enter', 'leave', 'enter', 'leave']);
  assert.deepEqual(answers, [2, 2]);
  assert.equal(below, 'north: 1');
  // What the compiler wrote down is not disturbed.
  assert.deepEqual(getMetadata('design:paramtypes', OrderController.prototype, 'below'), [String, String]);
  assert.equal(getMetadata('design:returntype', OrderService.prototype, 'take'), Promise);
  console.log('ok');
}

void main();
