import { Redis } from 'ioredis';
import { createLocks, lock, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { TripCounter } from '../../support/redis/trip-counter.ts';

describe('A batch on Redis', () => {
  const stage = useRedis();
  const keys = Array.from({ length: 100 }, (_, index) => `order:${index}`);

  it('A batch of 100 free keys is one round trip: all calls are sent before any reply, and so are all releases', async () => {
    const counter = await TripCounter.start(stage.server.port);
    const client = new Redis(counter.port);
    const locks = createLocks({ store: new RedisStore({ client }) });
    const tripsOf = async (work: () => Promise<unknown>): Promise<number> => {
      const before = counter.trips;
      await work();
      return counter.trips - before;
    };
    await runInTrace(
      async () => {
        // The server has seen the scripts.
        await lock.run('another', () => {});
        let batch: Awaited<ReturnType<typeof lock.acquireAll>> | undefined;
        const acquire = async (): Promise<void> => {
          batch = await lock.acquireAll(keys);
        };
        expect(await tripsOf(acquire)).toBe(1);
        expect(batch?.isHeld()).toBe(true);
        expect(await tripsOf(async () => batch?.release())).toBe(1);
      },
      { locks },
    );
    await locks.close();
    client.disconnect();
    await counter.stop();
  });
});
