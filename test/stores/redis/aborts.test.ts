import { createLocks, lock, runInTrace } from 'reenlock';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { until } from '../../support/until.ts';

describe('Many waiters that give up at once', () => {
  const stage = useRedis();
  const record = 'reenlock:{key}:lock';

  it('They leave nothing on the server', async () => {
    const locks = createLocks({ store: stage.store });
    const holder = stage.deafProcess().line(undefined, { id: 'key' });
    await holder.hold();
    const before = await stage.client.hgetall(record);
    let waiting = 0;
    locks.on('waiting', () => {
      waiting += 1;
    });
    const stop = new AbortController();
    const given = Array.from({ length: 200 }, () =>
      runInTrace(() => lock.acquire('key', { signal: stop.signal }).catch(() => undefined), { locks }),
    );
    await until(() => waiting === given.length);
    stop.abort();
    await Promise.all(given);
    await locks.close();
    expect(await stage.client.exists('reenlock:{key}:queue')).toBe(0);
    expect(await stage.client.hgetall(record)).toEqual(before);
    await holder.release();
  });
});
