import { fork } from 'node:child_process';
import { once } from 'node:events';

const callTimeoutMs = 120_000;
const closeTimeoutMs = 20_000;

/**
 * Starts bench/workers/<file>.mjs in a process of its own. `call(method, params)` runs one of the methods it serves, and
 * rejects when that takes two minutes: a lock that hangs must not hang the run.
 */
export async function startWorker(file, config) {
  const child = fork(new URL(`../workers/${file}.mjs`, import.meta.url), [JSON.stringify(config)], {
    serialization: 'advanced', // JSON has no NaN.
  });
  const label = `${file} (${JSON.stringify(config)})`;
  const calls = new Map();
  let lastId = 0;
  let ready;
  const started = new Promise((resolve, reject) => {
    ready = { resolve, reject };
  });

  child.on('message', ({ id, result, error }) => {
    if (id === 0) return ready.resolve();
    if (error === undefined) calls.get(id)?.resolve(result);
    else calls.get(id)?.reject(new Error(`${label}: ${error}`));
  });
  child.once('exit', (code, signal) => {
    const error = new Error(`${label} ended with ${code ?? signal}`);
    ready.reject(error);
    for (const { reject } of calls.values()) reject(error);
  });

  async function call(method, params, timeoutMs = callTimeoutMs) {
    lastId += 1;
    const id = lastId;
    let timer;
    try {
      return await new Promise((resolve, reject) => {
        calls.set(id, { resolve, reject });
        timer = setTimeout(() => reject(new Error(`${label}: no answer to ${method} in ${timeoutMs} ms`)), timeoutMs);
        child.send({ id, method, params });
      });
    } finally {
      clearTimeout(timer);
      calls.delete(id);
    }
  }

  async function close() {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    try {
      await call('close', undefined, closeTimeoutMs);
      child.disconnect();
    } catch (error) {
      console.error(error); // Said, not thrown: what stopped the run is on its way already.
      child.kill('SIGKILL');
    }
    await ended;
  }

  await started;
  return { call, close };
}
