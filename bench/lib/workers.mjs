import { fork } from 'node:child_process';
import { once } from 'node:events';

/**
 * Starts bench/workers/<file>.mjs in a process of its own. `call(method, params)` runs one of the methods it serves.
 */
export async function startWorker(file, config) {
  const child = fork(new URL(`../workers/${file}.mjs`, import.meta.url), [JSON.stringify(config)]);
  const calls = new Map();
  let lastId = 0;
  let ready;
  const started = new Promise((resolve, reject) => {
    ready = { resolve, reject };
  });

  child.on('message', ({ id, result, error }) => {
    if (id === 0) return ready.resolve();
    const { resolve, reject } = calls.get(id);
    calls.delete(id);
    if (error === undefined) resolve(result);
    else reject(new Error(`${file} (${JSON.stringify(config)}): ${error}`));
  });
  child.once('exit', (code) => {
    const error = new Error(`${file} (${JSON.stringify(config)}) ended with code ${code}`);
    ready.reject(error);
    for (const { reject } of calls.values()) reject(error);
  });

  function call(method, params) {
    lastId += 1;
    const id = lastId;
    return new Promise((resolve, reject) => {
      calls.set(id, { resolve, reject });
      child.send({ id, method, params });
    });
  }

  async function close() {
    if (child.exitCode !== null) return;
    const ended = once(child, 'exit');
    await call('close');
    child.disconnect();
    await ended;
  }

  await started;
  return { call, close };
}
