import { nowUs } from '../lib/clock.mjs';
import { atLeast, atMost } from '../lib/compare.mjs';
import { jain, overlaps, percentile } from '../lib/stats.mjs';
import { startWorker } from '../lib/workers.mjs';

const leadMs = 50;
const warmUpMs = 500;
const pollers = ['redlock', 'redlock 5ms', 'redis-semaphore'];

export const hotKeyProcesses = {
  name: 'hot-key-processes',
  title: 'A hot key over four processes',
  what:
    '4 processes × 8 loops on one key for 4 s, each hold 1 ms by timer. Waits are those asked within that time. Jain is ' +
    "the fairness index of the 32 loops' counts; violations are holds that began while another lasted.",
  contenders: ['subscribe-and-retry', ...pollers, 'reenlock'],
  columns: {
    holdsPerSecond: 'holds/s',
    waitP50Ms: 'wait p50 ms',
    waitP99Ms: 'wait p99 ms',
    waitSpread: 'p99 / p50',
    jain: 'Jain',
    violations: 'violations',
  },
  reference: { name: 'redis-semaphore', column: 'holdsPerSecond' },
  rounds: 5,
  size: { processes: 4, loops: 8, heldMs: 1, durationMs: 4_000 },
  quickRounds: 2,
  quickSize: { durationMs: 1_500 },
  open: async () => ({ close: async () => undefined }),

  // The processes live for one round: those of all contenders at a time would crowd the machine.
  async measure(_, contender, { redis, size, key }) {
    const start = () => startWorker('hot-key-processes', { contenders: [contender], port: redis.port });
    const workers = await Promise.all(Array.from({ length: size.processes }, start));
    try {
      await runAll(workers, { ...size, contender, key: `${key}:warm-up`, durationMs: warmUpMs });
      return figures(await runAll(workers, { ...size, contender, key }), size);
    } finally {
      await Promise.all(workers.map((worker) => worker.close()));
    }
  },

  targets({ best, ratio, max, median }) {
    const poller = best(pollers, 'holdsPerSecond');
    return [
      atLeast(`holds/s, × ${poller}, the best poller`, ratio('reenlock', poller, 'holdsPerSecond'), 0.9),
      atMost('wait p99 / p50', median('reenlock', 'waitSpread'), 1.5),
      atLeast('Jain', median('reenlock', 'jain'), 0.99),
      atMost('violations, the most of all rounds', max('reenlock', 'violations'), 0),
    ];
  },
};

async function runAll(workers, { durationMs, ...params }) {
  const startUs = nowUs() + leadMs * 1000;
  const endUs = startUs + durationMs * 1000;
  const runs = workers.map((worker) => worker.call('run', { ...params, startUs, endUs }));
  return { byLoop: (await Promise.all(runs)).flat(), endUs };
}

function figures({ byLoop, endUs }, { durationMs }) {
  const holds = byLoop.flat();
  const inTime = (hold) => hold.fromUs < endUs;
  const waitsMs = holds.map(({ askedUs, fromUs }) => (fromUs - askedUs) / 1000);
  const waitP50Ms = percentile(waitsMs, 0.5);
  const waitP99Ms = percentile(waitsMs, 0.99);
  return {
    holdsPerSecond: (holds.filter(inTime).length * 1000) / durationMs,
    waitP50Ms,
    waitP99Ms,
    waitSpread: waitP99Ms / waitP50Ms,
    jain: jain(byLoop.map((own) => own.filter(inTime).length)),
    violations: overlaps(holds),
  };
}
