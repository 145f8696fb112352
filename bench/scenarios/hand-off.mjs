import { setTimeout as sleep } from 'node:timers/promises';
import { nowUs } from '../lib/clock.mjs';
import { atMost } from '../lib/compare.mjs';
import { median } from '../lib/stats.mjs';
import { startWorker } from '../lib/workers.mjs';

const untilQueuedMs = 5;
const warmUp = { handOffs: 3_000, limitMs: 6_000, pauseMs: 1 };

export const handOff = {
  name: 'hand-off',
  title: 'Hand-off from process to process',
  what:
    'One process holds, another waits; from just before the call that releases to the acquire resolved in the other. ' +
    'They take turns, 20 times a round, or for a quarter of a second, after 3,000 turns, or six seconds, to get warm. ' +
    'Bare publish is no lock: from publish to message.',
  contenders: ['bare publish', 'subscribe-and-retry', 'redlock', 'redlock 5ms', 'redis-semaphore', 'reenlock'],
  columns: { p50Us: 'p50 µs' },
  reference: { name: 'bare publish', column: 'p50Us' },
  rounds: 40,
  size: { handOffs: 20, limitMs: 250 },
  quickRounds: 10,

  async open(names, { redis }) {
    const start = () => startWorker('hand-off', { contenders: names, port: redis.port });
    const pair = await Promise.all([start(), start()]);
    for (const name of names) await pingPong(pair, { contender: name, key: `warm-up:${name}`, ...warmUp });
    return { pair, close: () => Promise.all(pair.map((worker) => worker.close())) };
  },

  async measure({ pair }, name, { key, size }) {
    return { p50Us: median(await pingPong(pair, { contender: name, key, ...size })) };
  },

  targets: ({ ratio }) => [
    atMost('p50, × bare publish', ratio('reenlock', 'bare publish', 'p50Us'), 1.5),
    atMost('p50, × subscribe-and-retry', ratio('reenlock', 'subscribe-and-retry', 'p50Us'), 0.8),
  ],
};

async function pingPong([first, second], { contender, key, handOffs, limitMs, pauseMs = untilQueuedMs }) {
  const tookUs = [];
  const endUs = nowUs() + limitMs * 1000;
  let [holder, waiter] = [first, second];
  await holder.call('ask', { contender, key });
  while (tookUs.length < handOffs && nowUs() < endUs) {
    const granted = waiter.call('ask', { contender, key });
    await sleep(pauseMs);
    const [releasedUs, grantedUs] = await Promise.all([holder.call('release'), granted]);
    tookUs.push(grantedUs - releasedUs);
    [holder, waiter] = [waiter, holder];
  }
  await holder.call('release');
  return tookUs;
}
