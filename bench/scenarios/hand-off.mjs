import { setTimeout as sleep } from 'node:timers/promises';
import { serverOf } from '../contenders/index.mjs';
import { nowUs } from '../lib/clock.mjs';
import { atMost, headline } from '../lib/compare.mjs';
import { meterColumns, metered } from '../lib/meter.mjs';
import { median } from '../lib/stats.mjs';
import { startWorker } from '../lib/workers.mjs';

const untilQueuedMs = 5;
const warmUp = { handOffs: 3_000, limitMs: 6_000, pauseMs: 1 };

export const handOff = {
  name: 'hand-off',
  title: 'Hand-off from process to process',
  what:
    'One process holds, another waits: the time from just before the call that releases until the acquire resolves in the ' +
    'other process. They take turns. Bare publish is no lock: its time is that from the publish to the message.',
  contenders: [
    'bare publish',
    'bare poller',
    'subscribe-and-retry',
    'redlock',
    'redlock 5ms',
    'redis-semaphore',
    'advisory lock',
    'reenlock',
    'reenlock on PostgreSQL',
  ],
  columns: { p50Us: 'p50 µs', ...meterColumns('hand-off') },
  reference: { name: 'bare publish', columns: ['p50Us'] },
  rounds: 48,
  size: { handOffs: 24, limitMs: 250 },
  quick: { rounds: 9 },

  async open(names, { servers }) {
    const start = () => startWorker('hand-off', { contenders: names, ports: servers.ports });
    const pair = await Promise.all([start(), start()]);
    for (const name of names) {
      const work = () => pingPong(pair, { contender: name, key: `warm-up:${name}`, ...warmUp });
      await servers.get(serverOf(name)).learn(name, work);
    }
    return { pair, close: () => Promise.all(pair.map((worker) => worker.close())) };
  },

  measure({ pair }, contender, { servers, key, size }) {
    return metered({ workers: pair, server: servers.get(serverOf(contender)), contender }, async () => {
      const tookUs = await pingPong(pair, { contender, key, ...size });
      return { count: tookUs.length, p50Us: median(tookUs) };
    });
  },

  goals: ({ ratio }) => [
    atMost('p50, × bare publish', ratio('reenlock', 'bare publish', 'p50Us'), 1.25),
    atMost('p50, × subscribe-and-retry', ratio('reenlock', 'subscribe-and-retry', 'p50Us'), 0.8),
  ],
  headlines: ({ ratio }) => [
    headline('hand-off from process to process', ratio('reenlock', 'bare publish', 'p50Us'), '×', 'a bare `PUBLISH`'),
  ],
};

/** Each hold lasts for `pauseMs`, and up to `spreadMs` longer, while the other process waits. */
async function pingPong(pair, { contender, key, handOffs, limitMs, pauseMs = untilQueuedMs, spreadMs = 0 }) {
  const tookUs = [];
  const endUs = nowUs() + limitMs * 1000;
  let [holder, waiter] = pair;
  await holder.call('acquire', { contender, key });
  while (tookUs.length < handOffs && nowUs() < endUs) {
    const granted = waiter.call('acquire', { contender, key });
    await sleep(pauseMs + spreadMs * Math.random());
    const [releasedUs, grantedUs] = await Promise.all([holder.call('release'), granted]);
    tookUs.push(grantedUs - releasedUs);
    [holder, waiter] = [waiter, holder];
  }
  await holder.call('release');
  return tookUs;
}
