import { setTimeout as sleep } from 'node:timers/promises';
import { openContenders } from '../contenders/index.mjs';
import { nowUs } from '../lib/clock.mjs';
import { serve } from '../lib/serve.mjs';

await serve(async ({ contenders: names, port }) => {
  const contenders = await openContenders(names, { port });
  return {
    /** So many loops on one key from `startUs` to `endUs`; every hold is returned with its times. */
    async run({ contender, loops, startUs, ...params }) {
      await sleep(Math.max(0, (startUs - nowUs()) / 1000));
      return Promise.all(Array.from({ length: loops }, () => loop(contenders.get(contender), params)));
    },
    close: () => contenders.close(),
  };
});

function loop(contender, { key, heldMs, endUs }) {
  return contender.asOwner(async (owner) => {
    const holds = [];
    while (nowUs() < endUs) {
      const askedUs = nowUs();
      const handle = await contender.lock(key, owner);
      const fromUs = nowUs();
      await sleep(heldMs);
      const toUs = nowUs();
      await contender.unlock(handle, owner);
      holds.push({ askedUs, fromUs, toUs });
    }
    return holds;
  });
}
