import { type createLocks, type Hold, lock, runInTrace } from 'reenlock';
import { CasStore } from 'reenlock/redis';
import { buildLocks } from '../../../src/core/runtime/locks.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { MapCas } from '../../support/stores/map-cas.ts';

const leaseMs = 10_000;

describe('An adapter of a server without a clock, which returns its process’s time', () => {
  let clock: ManualClock;
  let server: MapCas;
  beforeEach(() => {
    clock = new ManualClock();
    server = new MapCas();
  });

  /** A process whose clock is ahead by `aheadMs`. With `canWrite` false its later writes fail. */
  function process(aheadMs: number) {
    const state = { canWrite: true };
    const adapter = Object.assign(new MapCas(), { texts: server.texts });
    const startMs = adapter.nowMs - clock.now().monoMs;
    adapter.before = (operation) => {
      if (operation !== 'read' && !state.canWrite) throw new Error('cut off');
      adapter.nowMs = startMs + clock.now().monoMs + aheadMs;
    };
    return { state, locks: buildLocks({ store: new CasStore({ adapter }, clock), leaseMs }, clock) };
  }

  /** Whether a second owner is granted the key after so many milliseconds, while the first believes that it holds it. */
  async function areTwoOwners(aheadMs: number, afterMs: number, renews: boolean): Promise<boolean> {
    const [one, two] = [process(0), process(aheadMs)];
    const inTraceOf = <T>(locks: ReturnType<typeof createLocks>, run: () => Promise<T>) => runInTrace(run, { locks });
    const answer = inTraceOf(one.locks, async () => {
      const first: Hold = await lock.acquire('k');
      one.state.canWrite = renews;
      await clock.advance(afterMs);
      const second = await runInTrace(() => lock.tryAcquire('k').then((hold) => hold !== null), {
        locks: two.locks,
        traceId: 'another',
      });
      const isBoth = first.isHeld() && second;
      one.state.canWrite = true;
      return isBoth;
    });
    const result = await answer.catch((error) => error);
    await Promise.all([one.locks.close(), two.locks.close(), clock.advance(20_000)]);
    return result;
  }

  it.each([
    ['102 ms, of a holder that can’t renew', 102, 9_897, false, false],
    ['more than 102 ms, of a holder that can’t renew', 104, 9_897, false, true],
    ['two thirds of a lease, of a holder that renews', 6_600, 3_290, true, false],
    ['more than two thirds of a lease, of a holder that renews', 6_800, 3_290, true, true],
  ])('With a difference of %s, there are two owners or not as the page says', async (_, ahead, after, renews, two) => {
    expect(await areTwoOwners(ahead, after, renews)).toBe(two);
  });
});
