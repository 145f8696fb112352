import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { MemoryStore } from '../../../src/core/memory/memory-store.ts';
import { isLong } from '../../fault/seed.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { play, schedule, type World } from '../../support/stores/deadlock-play.ts';

/** Mistakes that were made to try them were found by some hundreds, or not by ten thousands either. */
const schedules = isLong ? 20_000 : 1_200;

// A false alarm would be a ring of which no moment had all; one that is overlooked would be there at the end.
it(`${schedules} schedules with late and lost calls find each ring that lasts, and only what stood as a whole`, async () => {
  const met = { rings: 0, staleEdges: 0 };
  await fc.assert(
    fc.asyncProperty(schedule, async (each) => {
      const clock = new PromiseClock();
      await play(worldOf(clock), each, met);
      await clock.advance(60_000);
      if (clock.timerCount > 0) throw new Error('A timer was left');
    }),
    { numRuns: schedules },
  );
  // They had something to get wrong.
  expect(met.rings).toBeGreaterThan(schedules / 100);
  expect(met.staleEdges).toBeGreaterThan(schedules / 100);
}, 600_000);

/** Nothing in these plays takes more than promises: one turn lets all of them run. */
class PromiseClock extends ManualClock {
  override async settle(): Promise<void> {
    await turn();
  }
}

function worldOf(clock: ManualClock): World {
  return {
    clock,
    store: new MemoryStore({ clock }),
    options: {},
    hasLateCalls: true,
    pass: (ms) => (ms > 0 ? clock.advance(ms) : clock.settle()),
    async calm(isCalm) {
      // Each call that is lost costs its deadline and a poll; in so long, no wait of a ring runs out.
      for (let rest = 12; rest > 0; rest -= 1) {
        await clock.advance(3_000);
        if (await isCalm()) return true;
      }
      return false;
    },
    async settled(work) {
      let isOver = false;
      void work.finally(() => {
        isOver = true;
      });
      while (!isOver) await clock.advance(50);
    },
  };
}
