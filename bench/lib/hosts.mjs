import { serverOf } from '../contenders/index.mjs';
import { metered } from './meter.mjs';
import { startWorker } from './workers.mjs';

/**
 * One process for all contenders. For short figures: where the system places a process decides more than a lock's own
 * cost, and so all share the place and its changes.
 */
export async function hostTogether(load, names, { servers }) {
  // Two builds of this package would share one state in one process.
  if (process.env.BENCH_BEFORE) return hostApart(load, names, { servers });
  const worker = await startWorker('host', { load, contenders: names, ports: servers.ports });
  return hostOn(new Map(names.map((name) => [name, worker])), servers);
}

/** A process for each contender. For long figures: none pays for another's garbage or compiled code. */
export async function hostApart(load, names, { servers }) {
  const workers = new Map();
  for (const name of names) {
    workers.set(name, await startWorker('host', { load, contenders: [name], ports: servers.ports }));
  }
  return hostOn(workers, servers);
}

/** `warmUp` and `run` call the load with a contender's name and parameters; `run` returns figures and what they used. */
function hostOn(workers, servers) {
  const call = (contender, params) => workers.get(contender).call('run', { contender, ...params });
  const serverFor = (contender) => servers.get(serverOf(contender));
  return {
    warmUp: (contender, params) => serverFor(contender).learn(contender, () => call(contender, params)),
    run: (contender, params) =>
      metered({ workers: [workers.get(contender)], server: serverFor(contender), contender }, () =>
        call(contender, params),
      ),
    close: () => Promise.all([...new Set(workers.values())].map((worker) => worker.close())),
  };
}
