import { readdirSync, readFileSync } from 'node:fs';

/**
 * The processor time that a server uses during `work`, in µs: its first process, the children of that, and all of their
 * threads. A thread that ends meanwhile is not counted.
 */
export async function usedBy(pid, work) {
  const before = cpuUsByThread(pid);
  const result = await work();
  let serverUs = 0;
  for (const [thread, us] of cpuUsByThread(pid)) serverUs += us - (before.get(thread) ?? 0);
  return { result, serverUs };
}

/** Linux tells it in nanoseconds for each thread; on another system there is no figure. */
function cpuUsByThread(first) {
  if (process.platform !== 'linux') return new Map([[first, Number.NaN]]);
  const children = readFileSync(`/proc/${first}/task/${first}/children`, 'utf8').split(' ').filter(Boolean);
  const used = new Map();
  for (const pid of [first, ...children]) {
    for (const thread of orGone(() => readdirSync(`/proc/${pid}/task`)) ?? []) {
      const times = orGone(() => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'));
      if (times !== undefined) used.set(thread, Number(times.split(' ')[0]) / 1000);
    }
  }
  return used;
}

/** Undefined if the process or thread has just ended. */
function orGone(read) {
  try {
    return read();
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined;
    throw error;
  }
}
