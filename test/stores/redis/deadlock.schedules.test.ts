import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { systemClock } from '../../../src/core/base/clock.ts';
import { isWhole } from '../../fault/seed.ts';
import { type RedisStage, useRedis } from '../../support/redis/redis-stage.ts';
import { play, schedule, type World } from '../../support/stores/deadlock-play.ts';
import { until } from '../../support/until.ts';

const schedules = isWhole ? 100 : 60;

describe('on Redis', () => {
  const stage = useRedis();

  it(`${schedules} schedules with late and lost calls find each ring that lasts, and only what stood as a whole`, async () => {
    const met = { rings: 0, staleEdges: 0 };
    await fc.assert(
      fc.asyncProperty(schedule, async (each) => {
        await stage.client.flushall();
        await play(worldOf(stage), each, met);
      }),
      // A play that failed goes on in the background: another one would meet it.
      { numRuns: schedules, endOnFailure: true },
    );
    expect(met.rings).toBeGreaterThan(0);
    expect(met.staleEdges).toBeGreaterThan(0);
  }, 120_000);
});

function worldOf({ store }: RedisStage): World {
  return {
    clock: systemClock,
    store,
    options: { pollMs: 100, storeTimeoutMs: 250 },
    hasLateCalls: false,
    pass: (ms) => sleep(Math.min(ms, 10)),
    calm: async (isCalm) => {
      await until(isCalm);
      return true;
    },
    settled: async (work) => void (await work),
  };
}
