import { nowUs } from '../lib/clock.mjs';

/** So many loops at a time, each on a key of its own, or all on one, which they must be able to share. */
export async function run(contender, { key, loops, durationMs, isOneKey = false }) {
  const fromUs = nowUs();
  const endUs = fromUs + durationMs * 1000;
  let count = 0;

  const loop = (_, i) =>
    contender.asOwner(async (owner) => {
      const ownKey = isOneKey ? key : `${key}:${i}`;
      while (nowUs() < endUs) {
        const handle = await contender.lock(ownKey, owner);
        await contender.unlock(handle, owner);
        count += 1;
      }
    });

  await Promise.all(Array.from({ length: loops }, loop));
  return { count, perSecond: (count * 1e6) / (nowUs() - fromUs) };
}
