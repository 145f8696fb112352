import { setTimeout as sleep } from 'node:timers/promises';
import { create as createBarePair } from './bare-pair.mjs';

const pollMs = 5;
const jitterMs = 2;

/** The bare pair in a loop: a waiter tries again about every five milliseconds until it has the key. */
export function create() {
  const pair = createBarePair();
  return {
    ...pair,
    async lock(key) {
      for (;;) {
        const handle = await pair.tryLock(key);
        if (handle !== undefined) return handle;
        await sleep(pollMs + jitterMs * (2 * Math.random() - 1));
      }
    },
  };
}
