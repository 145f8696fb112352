import { Controller, Module, Param, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createLocks } from 'reenlock';
import { LockOn, LocksModule } from 'reenlock/nest';
import { takeUnit } from '../first-lock/stock.ts';

@Controller('orders')
class OrdersController {
  @Post(':id/units')
  @LockOn(({ params }) => `order:${params.id}`)
  async ship(@Param('id') id: string): Promise<{ units: number }> {
    return { units: await takeUnit(id) };
  }
}

@Module({ imports: [LocksModule.forRoot({ locks: createLocks() })], controllers: [OrdersController] })
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  await app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1');
  console.log(`Listening on ${await app.getUrl()}`);
}

void main();
