import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../lib/stats.mjs';
import { startWorker } from '../lib/workers.mjs';

const untilQueuedMs = 5;

export const deadlock = {
  name: 'deadlock',
  title: 'A deadlock over two processes',
  what:
    'Each of two processes holds a key; one waits for the other’s, then the other for the first one’s. From just before ' +
    'the call that closes the ring to its error. The peers wait for ever, or as long as they are told.',
  contenders: ['reenlock'],
  columns: { p50Us: 'p50 µs' },
  reference: { name: 'reenlock', column: 'p50Us' },
  rounds: 20,
  size: { rings: 20 },
  quickRounds: 5,

  async open(names, { redis }) {
    const start = () => startWorker('deadlock', { contenders: names, port: redis.port });
    const pair = await Promise.all([start(), start()]);
    for (const name of names) await close(pair, { contender: name, key: `warm-up:${name}`, rings: 100 });
    return { pair, close: () => Promise.all(pair.map((worker) => worker.close())) };
  },

  async measure({ pair }, name, { key, size }) {
    return { p50Us: median(await close(pair, { contender: name, key, ...size })) };
  },

  targets: () => [],
};

/** Closes rings, each on keys of its own; answers with how long each took to be found. */
async function close([first, second], { contender, key, rings }) {
  const tookUs = [];
  for (let ring = 0; ring < rings; ring += 1) {
    const [one, two] = [`${key}:${ring}:1`, `${key}:${ring}:2`];
    await Promise.all([first.call('hold', { contender, key: one }), second.call('hold', { contender, key: two })]);
    const waits = [wait(first, two)];
    await sleep(untilQueuedMs);
    waits.push(wait(second, one));
    const { process, waitedUs, code } = await Promise.race(waits);
    if (code !== 'ERR_LOCK_DEADLOCK') throw new Error(`The ring was not found: ${code}`);
    // On a busy machine the first may be queued last: its time is not that of a call which closes a ring.
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
