import { serverOf } from '../contenders/index.mjs';
import { atLeast, atMost, headline } from '../lib/compare.mjs';
import { runHeld } from '../lib/held.mjs';
import { meterColumns } from '../lib/meter.mjs';
import { jain, overlaps, percentile } from '../lib/stats.mjs';

const pollers = ['bare poller', 'redlock', 'redlock 5ms', 'redis-semaphore'];

export const hotKeyProcesses = {
  name: 'hot-key-processes',
  title: 'A hot key over four processes',
  what:
    '4 processes × 8 loops on one key for 5 s, each hold 1 ms by timer. The waits are those of all acquires that began in ' +
    "that time. Jain is the fairness index of the 32 loops' counts; a violation is a hold that began while another lasted.",
  contenders: ['subscribe-and-retry', ...pollers, 'advisory lock', 'reenlock', 'reenlock on PostgreSQL'],
  columns: {
    holdsPerSecond: 'holds/s',
    waitP50Ms: 'wait p50 ms',
    waitP99Ms: 'wait p99 ms',
    waitSpread: 'p99 / p50',
    jain: 'Jain',
    violations: 'violations',
    ...meterColumns('hold'),
  },
  reference: { name: 'bare poller', columns: ['holdsPerSecond'] },
  rounds: 5,
  size: { processes: 4, loops: 8, heldMs: 1, durationMs: 5_000 },
  quick: { rounds: 2, size: { durationMs: 1_500 } },
  open: async () => ({ close: async () => undefined }),
  measure: (_, contender, { servers, size, key }) =>
    runHeld({ contender, key, servers, server: servers.get(serverOf(contender)), ...size }, figures),

  goals({ best, ratio, max, median, has }) {
    const poller = best(pollers.filter(has), 'holdsPerSecond');
    return [
      atLeast(`holds/s, × ${poller}, the best poller`, ratio('reenlock', poller, 'holdsPerSecond'), 1.1),
      atMost('wait p99 / p50', median('reenlock', 'waitSpread'), 1.5),
      atLeast('Jain', median('reenlock', 'jain'), 0.99),
      atMost('violations, the most of all rounds', max('reenlock', 'violations'), 0),
    ];
  },
  headlines({ best, ratio, spread, has }) {
    const poller = best(pollers.filter(has), 'holdsPerSecond');
    return [
      headline(
        'a hot key over four processes, each hold 1 ms',
        ratio('reenlock', poller, 'holdsPerSecond'),
        '×',
        `the holds a second of the best poller, ${poller}, which is unfair`,
      ),
      headline('the p99 of the waits for it', spread('reenlock', 'waitSpread'), '×', 'their p50'),
      headline("Jain's fairness index of its 32 callers", spread('reenlock', 'jain'), '', '1 is equal shares'),
    ];
  },
};

function figures({ byLoop, endUs }, { durationMs }) {
  const holds = byLoop.flat();
  const isInTime = (hold) => hold.fromUs < endUs;
  const waitsMs = holds.map(({ askedUs, fromUs }) => (fromUs - askedUs) / 1000);
  const waitP50Ms = percentile(waitsMs, 0.5);
  const waitP99Ms = percentile(waitsMs, 0.99);
  return {
    count: holds.length,
    holdsPerSecond: (holds.filter(isInTime).length * 1000) / durationMs,
    waitP50Ms,
    waitP99Ms,
    waitSpread: waitP99Ms / waitP50Ms,
    jain: jain(byLoop.map((own) => own.filter(isInTime).length)),
    violations: overlaps(holds),
  };
}
