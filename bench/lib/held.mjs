import { nowUs } from './clock.mjs';
import { metered } from './meter.mjs';
import { startWorker } from './workers.mjs';

const leadMs = 50;
const warmUpMs = 500;

/**
 * Runs the load `held` on one key from several processes at the same time, after a warm-up, and returns `figures(holds,
 * params)` and what they used. The processes live for this one round: those of all contenders would crowd the machine.
 */
export async function runHeld({ contender, key, servers, server, processes, ...params }, figures) {
  const start = () => startWorker('host', { load: 'held', contenders: [contender], ports: servers.ports });
  const workers = await Promise.all(Array.from({ length: processes }, start));
  try {
    const warmUp = { ...params, contender, key: `${key}:warm-up`, durationMs: warmUpMs };
    await server.learn(contender, () => runAll(workers, warmUp));
    const holds = () => runAll(workers, { ...params, contender, key });
    return await metered({ workers, server, contender }, async () => figures(await holds(), params));
  } finally {
    await Promise.all(workers.map((worker) => worker.close()));
  }
}

async function runAll(workers, { durationMs, ...params }) {
  const startUs = nowUs() + leadMs * 1000;
  const endUs = startUs + durationMs * 1000;
  const runs = await Promise.all(workers.map((worker) => worker.call('run', { ...params, startUs, endUs })));
  return { byLoop: runs.flatMap(({ byLoop }) => byLoop), endUs };
}
