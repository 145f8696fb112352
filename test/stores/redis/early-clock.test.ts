import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { key } from '../../../src/testing/contract/stage.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { runTimed, setScriptTime } from '../../support/redis/script-time.ts';

describe('A Redis server whose clock is wrong', () => {
  const stage = useRedis();

  // A board without a battery begins in 1970. Microseconds have 16 digits since 2001-09-09T01:46:40Z.
  it.each(['1970-01-01T00:00:01Z', '2000-02-29T12:00:00Z', '2001-09-09T01:46:38Z', '2100-01-01T00:00:00Z'])(
    'Locks are granted, renewed, handed off and passed on at %s, with fences that rise',
    async (date) => {
      let nowMs = Date.parse(date);
      const client = stage.connect();
      runTimed(client);
      const pass = (ms: number): Promise<void> => {
        nowMs += ms;
        return setScriptTime(stage.client, nowMs * 1_000);
      };
      await pass(0);
      stage.store = new RedisStore({ client });
      const [one, two] = [await stage.process(), await stage.process()];
      const first = one.line();
      const fences = [(await first.hold()).fence];
      await pass(1_000);
      await first.renew(fences[0] as number);
      const second = await two.line().wait();
      await pass(1_000);
      const third = await one.line().wait();
      await first.release(60_000);
      fences.push((await two.granted(second)).fence);
      await pass(1_000);
      expect(await stage.store.forceRelease(key, fences[1] as number)).toBe(true);
      fences.push((await one.granted(third)).fence);
      const fourth = two.line();
      const passed = await third.transfer(fourth);
      fences.push(passed.status === 'granted' ? passed.grant.fence : 0);
      await pass(1_000);
      await fourth.release(60_000);
      fences.push((await one.line().hold()).fence);
      expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
      for (const process of [one, two]) await process.leave();
    },
  );
});
