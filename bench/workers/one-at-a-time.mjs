import { openContenders } from '../contenders/index.mjs';
import { nowUs } from '../lib/clock.mjs';
import { serve } from '../lib/serve.mjs';
import { median } from '../lib/stats.mjs';

await serve(async ({ contenders: names, port }) => {
  const contenders = await openContenders(names, { port });
  return {
    run: ({ contender, ...params }) => oneAtATime(contenders.get(contender), params),
    close: () => contenders.close(),
  };
});

/** Acquires and releases one key, cycle after cycle. */
function oneAtATime(contender, { key, cycles }) {
  return contender.asOwner(async (owner) => {
    const tookUs = new Float64Array(cycles);
    for (let cycle = 0; cycle < cycles; cycle += 1) {
      const fromUs = nowUs();
      const handle = await contender.lock(key, owner);
      await contender.unlock(handle, owner);
      tookUs[cycle] = nowUs() - fromUs;
    }
    return { p50Us: median(tookUs) };
  });
}
