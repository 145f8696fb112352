import { nowUs } from '../lib/clock.mjs';
import { connect } from '../lib/connect.mjs';
import { commandsProcessed } from '../servers/redis.mjs';

const timesBetweenLooks = 100;
const own = 1; // The first look at the number of commands is itself a command, and counts itself afterwards.

/** Takes the key and re-enters it, again and again; counts the commands that the server ran meanwhile. */
export async function run(contender, { key, durationMs }, { redis }) {
  const probe = await connect(redis);
  try {
    return await contender.asOwner(async (owner) => {
      const outer = await contender.lock(key, owner);
      const before = await commandsProcessed(probe);
      const { count, perSecond } = await reenter(contender, key, owner, durationMs);
      const commands = (await commandsProcessed(probe)) - before - own;
      await contender.unlock(outer, owner);
      return { count, perSecond, commands, commandsEach: commands / count };
    });
  } finally {
    await probe.quit();
  }
}

async function reenter(contender, key, owner, durationMs) {
  const fromUs = nowUs();
  const endUs = fromUs + durationMs * 1000;
  let count = 0;
  while (nowUs() < endUs) {
    for (let i = 0; i < timesBetweenLooks; i += 1) {
      const inner = await contender.lock(key, owner);
      await contender.unlock(inner, owner);
    }
    count += timesBetweenLooks;
  }
  return { count, perSecond: (count * 1e6) / (nowUs() - fromUs) };
}
