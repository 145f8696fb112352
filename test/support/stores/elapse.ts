import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a server's clock, as `readMs` reads it, has gone on by more than `ms`. */
export async function elapse(ms: number, readMs: () => Promise<number>): Promise<void> {
  const untilMs = (await readMs()) + ms + 1;
  for (let nowMs = 0; nowMs < untilMs; nowMs = await readMs()) await sleep(Math.min(ms, untilMs - nowMs));
}

/** The same for a Redis server; `time` is its answer to TIME. */
export function elapseOnRedis(ms: number, time: () => Promise<unknown>): Promise<void> {
  return elapse(ms, async () => {
    const [seconds, micros] = (await time()) as readonly (string | number)[];
    return Number(seconds) * 1000 + Number(micros) / 1000;
  });
}
