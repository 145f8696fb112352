import { setTimeout as sleep } from 'node:timers/promises';
import { serverOf } from '../contenders/index.mjs';
import { headline } from '../lib/compare.mjs';
import { meterColumns, metered } from '../lib/meter.mjs';
import { median } from '../lib/stats.mjs';
import { startWorker } from '../lib/workers.mjs';

const untilQueuedMs = 5;

export const deadlock = {
  name: 'deadlock',
  title: 'A deadlock over two processes',
  what:
    'Each of two processes holds a key; one waits for the key of the other, then the other for the key of the first. The ' +
    'time from just before the call that closes the cycle to its error. The other contenders do not find deadlocks.',
  contenders: ['reenlock', 'reenlock on PostgreSQL'],
  columns: { p50Us: 'p50 µs', ...meterColumns('deadlock') },
  reference: { name: 'reenlock', columns: ['p50Us'] },
  rounds: 20,
  size: { cycles: 40 },
  quick: { rounds: 5 },

  async open(names, { servers }) {
    const start = () => startWorker('deadlock', { contenders: names, ports: servers.ports });
    const pair = await Promise.all([start(), start()]);
    for (const name of names) {
      const work = () => close(pair, { contender: name, key: `warm-up:${name}`, cycles: 100 });
      await servers.get(serverOf(name)).learn(name, work);
    }
    return { pair, close: () => Promise.all(pair.map((worker) => worker.close())) };
  },

  measure({ pair }, contender, { servers, key, size }) {
    return metered({ workers: pair, server: servers.get(serverOf(contender)), contender }, async () => {
      const tookUs = await close(pair, { contender, key, ...size });
      return { count: size.cycles, p50Us: median(tookUs) };
    });
  },

  goals: () => [],
  headlines: ({ median }) => [
    headline(
      'a deadlock',
      median('reenlock', 'p50Us') / 1_000,
      'ms',
      'from the call that closes the cycle to its `DeadlockError`',
    ),
  ],
};

/** Closes cycles, each on keys of its own; returns how long it took to find each. */
async function close([first, second], { contender, key, cycles }) {
  const tookUs = [];
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    const [one, two] = [`${key}:${cycle}:1`, `${key}:${cycle}:2`];
    await Promise.all([first.call('hold', { contender, key: one }), second.call('hold', { contender, key: two })]);
    const waits = [wait(first, two)];
    await sleep(untilQueuedMs);
    waits.push(wait(second, one));
    const { process, waitedUs, code } = await Promise.race(waits);
    if (code !== 'ERR_LOCK_DEADLOCK') throw new Error(`The cycle was not found: ${code}`);
    // On a busy machine the first may be queued last: its time is not the time of the call that closes the cycle.
    if (process === second) tookUs.push(waitedUs);
    await process.call('release');
    await Promise.all(waits);
    await (process === first ? second : first).call('release');
  }
  return tookUs;
}

async function wait(process, key) {
  return { process, ...(await process.call('wait', { key })) };
}
