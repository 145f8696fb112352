import { setTimeout as sleep } from 'node:timers/promises';
import { nowUs } from '../lib/clock.mjs';

/**
 * So many loops on one key from `startUs` to `endUs`; each hold lasts `heldMs` by timer, or no time. Returns all holds of
 * each loop with their times.
 */
export async function run(contender, { loops, startUs, ...params }) {
  await sleep(Math.max(0, (startUs - nowUs()) / 1000));
  const byLoop = await Promise.all(Array.from({ length: loops }, () => loop(contender, params)));
  return { byLoop };
}

function loop(contender, { key, heldMs, endUs }) {
  return contender.asOwner(async (owner) => {
    const holds = [];
    while (nowUs() < endUs) {
      const askedUs = nowUs();
      const handle = await contender.lock(key, owner);
      const fromUs = nowUs();
      if (heldMs > 0) await sleep(heldMs);
      const toUs = nowUs();
      await contender.unlock(handle, owner);
      holds.push({ askedUs, fromUs, toUs });
    }
    return holds;
  });
}
