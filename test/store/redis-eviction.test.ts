import { RedisStore } from '../../src/core/store/redis-store.ts';
import type { StoreMessage } from '../../src/core/store/store.ts';
import { watchLeaks } from '../helpers/leaks.ts';
import { useRedis } from './redis.ts';

watchLeaks();

describe('a server that may evict locks', () => {
  const stage = useRedis();

  async function firstWarning(policy: string): Promise<StoreMessage | undefined> {
    await stage.client.config('SET', 'maxmemory-policy', policy);
    const messages: StoreMessage[] = [];
    const store = new RedisStore({ client: stage.client });
    const end = await store.subscribe('a-process', (message) => messages.push(message));
    // Sent after the store's question on the same connection, so answered after it.
    await stage.client.ping();
    await end();
    return messages.find(({ kind }) => kind === 'warning');
  }

  it('is warned of when a process first subscribes', async () => {
    expect(await firstWarning('allkeys-lru')).toMatchObject({
      code: 'LOCK_EVICTION',
      message: expect.stringContaining('`allkeys-lru`'),
    });
  });

  it('is not suspected where the policy is noeviction', async () => {
    expect(await firstWarning('noeviction')).toBeUndefined();
  });
});
