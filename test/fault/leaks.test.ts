import { join } from 'node:path';
import { startScript } from '../support/processes/processes.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { until } from '../support/until.ts';
import type { LoopResult } from './processes/loop.ts';
import { isLong } from './seed.ts';

describe('Leaks', () => {
  const redis = useRedis();

  it('After any number of holds, waits and refusals, the heap is no larger, and no timer, listener, connection, hold or waiter is left', async () => {
    const args = [redis.server.port, 14, isLong ? 1_000 : 150].map(String);
    const script = startScript(join(__dirname, 'processes/loop.ts'), {
      args,
      timeoutMs: 300_000,
    });
    const { sizes, listenersBefore, listenersAfter } = await script.once<LoopResult>();
    // What grows with every hold, were it by its id alone, grows by more than this. The first rounds are Node's own.
    const warm = Math.max(...sizes.slice(5, 9));
    expect(Math.min(...sizes.slice(9))).toBeLessThan(warm + 150_000);
    expect(listenersAfter).toEqual(listenersBefore);
    // It is not told to end: nothing keeps it alive.
    expect(await script.exited).toMatchObject({ code: 0, stderr: '' });
    await until(async () => (await redis.connections()).length === 0);
    expect(await redis.client.keys('*')).toEqual(['reenlock:{key}:lock']);
    const { holds, waiters } = await redis.store.inspect('key');
    expect([holds, waiters]).toEqual([[], []]);
  }, 600_000);
});
