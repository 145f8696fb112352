import { setImmediate as turn } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { StoreMessage } from '../../../src/core/model/store.ts';
import { RedisStore } from '../../../src/core/stores/redis/redis-store.ts';
import { freePort } from '../../support/processes/free-port.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { disconnectTimeout } from '../../support/redis/client.ts';
import { useRedis } from '../../support/redis/stage.ts';

watchLeaks();

describe('when a process first subscribes', () => {
  const stage = useRedis();

  async function warnings(client = stage.client): Promise<StoreMessage[]> {
    const messages: StoreMessage[] = [];
    const store = new RedisStore({ client });
    const end = await store.subscribe('a-process', (message) => messages.push(message));
    // Sent after the store's question on the same connection, so answered after it.
    await client.ping();
    // What came with the same packet is told in the same turn.
    await turn();
    await end();
    return messages.filter(({ kind }) => kind === 'warning');
  }

  it.each(['allkeys-lru', 'volatile-ttl', 'allkeys-random'])(
    'a server that may evict locks is warned of (%s)',
    async (policy) => {
      await stage.client.config('SET', 'maxmemory-policy', policy);
      const message = expect.stringContaining(`\`${policy}\``);
      expect(await warnings()).toEqual([{ kind: 'warning', code: 'LOCK_EVICTION', message }]);
      await stage.client.config('SET', 'maxmemory-policy', 'noeviction');
    },
  );

  async function warningsOf(version: string): Promise<StoreMessage[]> {
    const client = stage.connect();
    // The client asks, too, when it connects.
    await client.ping();
    const ask = client.info.bind(client);
    client.info = () => ask().then((info) => info.replace(/^(redis_version:).*\r$/m, `$1${version}\r`));
    const told = await warnings(client);
    client.disconnect();
    return told;
  }

  it.each(['5.0.7', '6.0.16', '6.1.240'])('a server of version %s is warned of', async (version) => {
    const message = expect.stringContaining(`Redis ${version}:`);
    expect(await warningsOf(version)).toEqual([{ kind: 'warning', code: 'LOCK_REDIS_OLD', message }]);
  });

  it.each(['6.2.0', '7.0.15', '10.0.1'])(
    'nothing is said of one of version %s that evicts nothing',
    async (version) => {
      expect(await warningsOf(version)).toEqual([]);
    },
  );

  it('a server that does not answer is asked nothing: its client would keep the question of every try', async () => {
    const client = new Redis({ port: await freePort(), maxRetriesPerRequest: null, disconnectTimeout });
    client.on('error', () => {});
    const ask = jest.spyOn(client, 'info');
    const subscribed = new RedisStore({ client }).subscribe('a-process', () => {});
    await expect(subscribed).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
    expect(ask).not.toHaveBeenCalled();
    client.disconnect();
  });
});
