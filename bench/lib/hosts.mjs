import { startWorker } from './workers.mjs';

/**
 * One process for all contenders. For short figures: where the system places a process decides more than a lock's own
 * cost, and so all share the place and its changes.
 */
export async function hostTogether(file, names, { redis }) {
  const worker = await startWorker(file, { contenders: names, port: redis.port });
  return {
    run: (contender, params) => worker.call('run', { contender, ...params }),
    close: () => worker.close(),
  };
}

/** A process for each contender. For long figures: none pays for another's garbage or compiled code. */
export async function hostApart(file, names, { redis }) {
  const start = (name) => startWorker(file, { contenders: [name], port: redis.port });
  const workers = new Map();
  for (const name of names) workers.set(name, await start(name));
  return {
    run: (contender, params) => workers.get(contender).call('run', { contender, ...params }),
    close: () => Promise.all([...workers.values()].map((worker) => worker.close())),
  };
}
