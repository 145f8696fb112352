import assert from 'node:assert/strict';
import { Controller, Get, Module, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createLocks, lock, runInTrace } from 'reenlock';
import { type LockedRequest, LockOn, LocksModule } from 'reenlock/nest';

const locks = createLocks();

@Controller()
class Orders {
  @Get()
  @LockOn('order:42', { waitMs: 0 })
  async get(@Req() { lock: hold }: LockedRequest): Promise<boolean> {
    return lock.run('order:42', () => hold?.isHeld() === true);
  }
}

@Module({ imports: [LocksModule.forRoot({ locks })], controllers: [Orders] })
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
await app.listen(0, '127.0.0.1');
const url = await app.getUrl();
assert.equal(await (await fetch(url)).json(), true);
await runInTrace(
  () =>
    lock.run('order:42', async () =>
      assert.equal((await fetch(url)).headers.get('content-type'), 'application/problem+json'),
    ),
  { locks },
);
await app.close();
await assert.rejects(
  runInTrace(() => lock.acquire('order:42'), { locks }),
  { code: 'ERR_LOCK_CLOSED' },
);
console.log('ok');
