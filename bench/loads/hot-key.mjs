import { nowUs } from '../lib/clock.mjs';
import { connect } from '../lib/connect.mjs';
import { commandsProcessed } from '../servers/redis.mjs';

const lookEveryMs = 250;

/**
 * So many loops on one key, without any time held. An overtake is a grant while an earlier acquire still waits.
 *
 * `commandsFirst` and `commandsLast` are the commands that a grant costs the server, near the start and at the end.
 * They show whether a key that stays hot becomes more expensive, and other work on the machine does not change them.
 */
export async function run(contender, { key, loops, durationMs, isOnRedis }, { redis }) {
  let count = 0;
  const watch = isOnRedis ? await watchCommands(redis, () => count) : undefined;
  const waiting = new Set(); // The acquires that were not granted yet, the oldest first.
  const fromUs = nowUs();
  const endUs = fromUs + durationMs * 1000;
  let acquires = 0;
  let overtakes = 0;

  const loop = () =>
    contender.asOwner(async (owner) => {
      while (nowUs() < endUs) {
        acquires += 1;
        const acquire = acquires;
        waiting.add(acquire);
        const handle = await contender.lock(key, owner);
        const [oldest] = waiting;
        if (oldest !== acquire) overtakes += 1;
        waiting.delete(acquire);
        count += 1;
        await contender.unlock(handle, owner);
      }
    });

  await Promise.all(Array.from({ length: loops }, loop));
  const perSecond = (count * 1e6) / (nowUs() - fromUs);
  return { count, perSecond, overtakes, ...(await watch?.end()) };
}

/** Looks at the server's number of commands, and at the grants, four times a second until `end`. */
async function watchCommands(redis, countOf) {
  const probe = await connect(redis);
  const looks = [];
  const look = async () => {
    const commands = await commandsProcessed(probe);
    looks.push({ commands, count: countOf() });
  };
  const timer = setInterval(look, lookEveryMs);
  return {
    async end() {
      clearInterval(timer);
      await probe.quit();
      const [commandsFirst, commandsLast] = [looks.slice(0, 3), looks.slice(-3)].map(commandsAGrant);
      return { commandsFirst, commandsLast, growth: commandsLast / commandsFirst };
    },
  };
}

/** Each look is itself a command. */
function commandsAGrant(looks) {
  if (looks.length < 2) return Number.NaN;
  const [from, to] = [looks.at(0), looks.at(-1)];
  return (to.commands - from.commands - (looks.length - 1)) / (to.count - from.count);
}
