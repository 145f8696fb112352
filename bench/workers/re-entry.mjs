import { openContenders } from '../contenders/index.mjs';
import { nowUs } from '../lib/clock.mjs';
import { connect } from '../lib/connect.mjs';
import { commandsProcessed } from '../lib/redis-server.mjs';
import { serve } from '../lib/serve.mjs';

const timesBetweenLooks = 100;

await serve(async ({ contenders: names, port }) => {
  const contenders = await openContenders(names, { port });
  const probe = await connect(port);
  return {
    run: ({ contender, ...params }) => reEntry(contenders.get(contender), probe, params),
    close: () => Promise.all([contenders.close(), probe.quit()]),
  };
});

/** Takes the key, and re-enters it for so long; counts what the server was asked meanwhile. */
function reEntry(contender, probe, { key, durationMs }) {
  return contender.asOwner(async (owner) => {
    const outer = await contender.lock(key, owner);
    const before = await commandsProcessed(probe);
    const { times, perSecond } = await reenter(contender, key, owner, durationMs);
    const commands = (await commandsProcessed(probe)) - before - 1; // The first look counts itself afterwards.
    await contender.unlock(outer, owner);
    return { perSecond, commands, commandsEach: commands / times };
  });
}

async function reenter(contender, key, owner, durationMs) {
  const fromUs = nowUs();
  let times = 0;
  while (nowUs() - fromUs < durationMs * 1000) {
    for (let i = 0; i < timesBetweenLooks; i += 1) {
      const inner = await contender.lock(key, owner);
      await contender.unlock(inner, owner);
    }
    times += timesBetweenLooks;
  }
  return { times, perSecond: (times * 1e6) / (nowUs() - fromUs) };
}
