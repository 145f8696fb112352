import { join } from 'node:path';
import { readDocument } from '../docs/markdown.ts';
import { startScript } from '../support/processes/processes.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import type { KeysResult, WaitersResult } from './processes/memory.ts';
import { isLong } from './seed.ts';

describe('the memory that locks take', () => {
  const redis = useRedis();

  async function measure<T>(what: 'waiters' | 'keys', count: number): Promise<T> {
    const args = [what, redis.server.port, count].map(String);
    const script = startScript(join(__dirname, 'processes/memory.ts'), {
      args,
      timeoutMs: 600_000,
    });
    const result = await script.once<T>();
    expect(await script.exited).toMatchObject({ code: 0, stderr: '' });
    return result;
  }

  /** A figure of the server's. */
  async function info(section: 'memory' | 'keyspace', name: string): Promise<number> {
    const [, figure] = new RegExp(`\\b${name}[:=](\\d+)`).exec(await redis.client.info(section)) ?? [];
    return Number(figure);
  }

  it('[memory-01] is below 28 MB of heap for 10,000 waiters, alongside the jobs that wait, and the heap is as before when all have ended', async () => {
    const { before, idle, waiting, after } = await measure<WaitersResult>('waiters', 10_000);
    const each = (bytes: number) => Math.round(bytes / 10_000);
    process.stdout.write(`memory: ${each(waiting - idle)} bytes a waiter, ${each(idle - before)} its job\n`);
    expect(waiting - idle).toBeLessThan(28_000_000);
    // A map entry a waiter would be half a megabyte, at least.
    expect(after - before).toBeLessThan(400_000);
  }, 120_000);

  const count = isLong ? 1_000_000 : 30_000;

  it('[memory-02] is the same before and after as many keys were used once as there may be: what the server keeps has an end', async () => {
    const usedBefore = await info('memory', 'used_memory');
    const { early, late } = await measure<KeysResult>('keys', count);
    const perKey = ((await info('memory', 'used_memory')) - usedBefore) / count;
    process.stdout.write(`memory: ${Math.round(perKey)} bytes of the server a key, for somewhat over an hour\n`);
    // A map entry a key would be a megabyte, at least, for those in between.
    expect(late - early).toBeLessThan(500_000);
    // What is kept is the last fence, for somewhat over an hour: each key has an expiry.
    expect(await info('keyspace', 'keys')).toBeGreaterThanOrEqual(count);
    expect(await info('keyspace', 'expires')).toBe(await info('keyspace', 'keys'));
    expect(await info('keyspace', 'avg_ttl')).toBeLessThan(2 * 3_600_000);
    const [, told] = /about (\d+)\s+bytes\s+a\s+key,\s+all\s+included/.exec(readDocument('docs/stores/redis.md')) ?? [];
    expect(perKey).toBeLessThan(1.25 * Number(told));
  }, 600_000);
});
