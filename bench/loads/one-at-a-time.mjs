import { nowUs } from '../lib/clock.mjs';
import { median } from '../lib/stats.mjs';

/** Acquires and releases one key, cycle after cycle. */
export function run(contender, { key, durationMs }) {
  return contender.asOwner(async (owner) => {
    const tookUs = [];
    const endUs = nowUs() + durationMs * 1000;
    for (let fromUs = nowUs(); fromUs < endUs; ) {
      const handle = await contender.lock(key, owner);
      await contender.unlock(handle, owner);
      const toUs = nowUs();
      tookUs.push(toUs - fromUs);
      fromUs = toUs;
    }
    return { count: tookUs.length, p50Us: median(tookUs) };
  });
}
