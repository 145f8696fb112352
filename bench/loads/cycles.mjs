import { nowUs } from '../lib/clock.mjs';

const cyclesBetweenLooks = 20;

/** Acquires and releases one key, cycle after cycle, as `one-at-a-time`; but cycles may be too short to be timed one by one. */
export function run(contender, { key, durationMs }) {
  return contender.asOwner(async (owner) => {
    const fromUs = nowUs();
    const endUs = fromUs + durationMs * 1000;
    let count = 0;
    while (nowUs() < endUs) {
      for (let i = 0; i < cyclesBetweenLooks; i += 1) await contender.cycle(key, owner);
      count += cyclesBetweenLooks;
    }
    return { count, perSecond: (count * 1e6) / (nowUs() - fromUs) };
  });
}
