import { NestFactory } from '@nestjs/core';
import { openShop } from '../orders/setup.ts';
import { createModule } from './app.ts';

async function main(): Promise<void> {
  const { orders, locks, close } = openShop();
  const app = await NestFactory.create(createModule(orders, locks), { logger: ['error', 'warn'] });
  const stop = async (): Promise<void> => {
    // Who holds an order finishes, who waits for one gets 503: no order stays locked until its lease ends.
    await app.close();
    await close();
  };
  await app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1');
  console.log(`Listening on ${await app.getUrl()}`);
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

void main();
