import { openContenders } from '../contenders/index.mjs';
import { nowUs } from '../lib/clock.mjs';
import { serve } from '../lib/serve.mjs';

await serve(async ({ contenders: names, port }) => {
  const contenders = await openContenders(names, { port });
  return {
    run: ({ contender, ...params }) => hotKey(contenders.get(contender), params),
    close: () => contenders.close(),
  };
});

/** So many loops on one key, each so many turns long and without any time held; no turn begins after the limit. */
async function hotKey(contender, { key, loops, turns, limitMs }) {
  const waiting = new Set(); // The asks that were not granted yet, the oldest first.
  const fromUs = nowUs();
  let asks = 0;
  let grants = 0;
  let overtakes = 0;

  const loop = () =>
    contender.asOwner(async (owner) => {
      for (let turn = 0; turn < turns && nowUs() - fromUs < limitMs * 1000; turn += 1) {
        asks += 1;
        const ask = asks;
        waiting.add(ask);
        const handle = await contender.lock(key, owner);
        const [oldest] = waiting;
        if (oldest !== ask) overtakes += 1;
        waiting.delete(ask);
        grants += 1;
        await contender.unlock(handle, owner);
      }
    });

  await Promise.all(Array.from({ length: loops }, loop));
  return { handOffsPerSecond: (grants * 1e6) / (nowUs() - fromUs), grants, overtakes };
}
