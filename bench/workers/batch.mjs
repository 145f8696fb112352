import { openContenders } from '../contenders/index.mjs';
import { nowUs } from '../lib/clock.mjs';
import { serve } from '../lib/serve.mjs';
import { median } from '../lib/stats.mjs';

await serve(async ({ contenders: names, port }) => {
  const contenders = await openContenders(names, { port });
  return {
    run: ({ contender, ...params }) => batches(contenders.get(contender), params),
    close: () => contenders.close(),
  };
});

/** Takes so many free keys together and gives them back, time after time, for each of the sizes. */
function batches(contender, { key, sizes, times }) {
  return contender.asOwner(async (owner) => {
    const figures = {};
    for (const size of sizes) {
      const keys = Array.from({ length: size }, (_, i) => `${key}:${i}`);
      const tookUs = new Float64Array(Math.max(10, Math.ceil(times / size)));
      for (let i = 0; i < tookUs.length; i += 1) {
        const fromUs = nowUs();
        const handle = await contender.lockAll(keys, owner);
        await contender.unlockAll(handle, owner);
        tookUs[i] = nowUs() - fromUs;
      }
      figures[`of${size}Us`] = median(tookUs);
    }
    return figures;
  });
}
