import { setTimeout as sleep } from 'node:timers/promises';
import { nowUs } from '../lib/clock.mjs';
import { percentile } from '../lib/stats.mjs';

/** So many clients, each of which takes some of the keys at random, holds them and takes others, again and again. */
export async function run(contender, { key, clients, size, of, heldMs, durationMs }) {
  const keys = Array.from({ length: of }, (_, i) => `${key}:${i}`);
  const tookUs = [];
  const endUs = nowUs() + durationMs * 1000;
  const client = async () => {
    while (nowUs() < endUs) {
      await contender.asOwner(async (owner) => {
        const fromUs = nowUs();
        const handle = await contender.lockAll(someOf(keys, size), owner);
        tookUs.push(nowUs() - fromUs);
        await sleep(heldMs);
        await contender.unlockAll(handle, owner);
      });
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return {
    count: tookUs.length,
    p50Ms: percentile(tookUs, 0.5) / 1000,
    p99Ms: percentile(tookUs, 0.99) / 1000,
    maxMs: Math.max(...tookUs) / 1000,
  };
}

function someOf(keys, size) {
  const left = [...keys];
  return Array.from({ length: size }, () => left.splice(Math.floor(Math.random() * left.length), 1)[0]);
}
