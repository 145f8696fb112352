import { nowUs } from '../lib/clock.mjs';
import { median } from '../lib/stats.mjs';

/** Acquires so many free keys together and releases them, again and again. */
export function run(contender, { key, size, durationMs }) {
  return contender.asOwner(async (owner) => {
    const keys = Array.from({ length: size }, (_, i) => `${key}:${i}`);
    const tookUs = [];
    const endUs = nowUs() + durationMs * 1000;
    for (let fromUs = nowUs(); fromUs < endUs; ) {
      const handle = await contender.lockAll(keys, owner);
      await contender.unlockAll(handle, owner);
      const toUs = nowUs();
      tookUs.push(toUs - fromUs);
      fromUs = toUs;
    }
    return { count: tookUs.length, p50Us: median(tookUs) };
  });
}
