import { openContenders } from '../contenders/index.mjs';
import { nowUs } from '../lib/clock.mjs';
import { serve } from '../lib/serve.mjs';

await serve(async ({ contenders: names, port }) => {
  const contenders = await openContenders(names, { port });
  return {
    run: ({ contender, ...params }) => wide(contenders.get(contender), params),
    close: () => contenders.close(),
  };
});

/** So many loops at a time, each on a key of its own. */
async function wide(contender, { key, loops, cycles }) {
  const loop = (_, i) =>
    contender.asOwner(async (owner) => {
      const ownKey = `${key}:${i}`;
      for (let cycle = 0; cycle < cycles; cycle += 1) {
        const handle = await contender.lock(ownKey, owner);
        await contender.unlock(handle, owner);
      }
    });

  const fromUs = nowUs();
  await Promise.all(Array.from({ length: loops }, loop));
  return { cyclesPerSecond: (loops * cycles * 1e6) / (nowUs() - fromUs) };
}
