import { setTimeout as sleep } from 'node:timers/promises';
import { nowUs } from '../lib/clock.mjs';
import { openReenlock } from '../lib/open-reenlock.mjs';
import { serve } from '../lib/serve.mjs';
import { median } from '../lib/stats.mjs';

const fillWidth = 500;
const maxWaiters = 20_000;

/** Ten thousand acquires at once take the server more than the default. */
const storeTimeoutMs = 60_000;

/** Longer than a run: the holds that only stand by are not renewed during a measurement. */
const longMs = 3_600_000;

await serve(async ({ ports }) => {
  const settings = { storeTimeoutMs, waitMs: longMs, maxHoldMs: longMs, maxWaiters, maxWaitersPerKey: maxWaiters };
  const { locks, lock, runInTrace, close } = await openReenlock(ports, {}, settings);
  const asOwner = (work) => runInTrace(work, { locks });
  const cycle = (key, options) => asOwner(() => lock.run(key, () => {}, options));

  /** Uses so many keys, once each. */
  async function useKeys({ keys }) {
    let next = 0;
    await wide(fillWidth, async () => {
      while (next < keys) await cycle(`used:${next++}`);
    });
  }

  /** Cycles on used keys, chosen at random, one at a time. */
  async function oneAtATime({ keys, durationMs }) {
    return timed(durationMs, () => cycle(`used:${Math.floor(keys * Math.random())}`));
  }

  /** The same, so many at once. Each loop has keys of its own, so that none waits for another. */
  async function manyAtOnce({ keys, width, durationMs }) {
    const anyKey = (loop) => `used:${loop + width * Math.floor((keys / width - 1) * Math.random())}`;
    const fromUs = nowUs();
    const endUs = fromUs + durationMs * 1000;
    let count = 0;
    await wide(width, async (_, loop) => {
      for (; nowUs() < endUs; count += 1) await cycle(anyKey(loop));
    });
    return { count, eachUs: (nowUs() - fromUs) / count };
  }

  const turns = createTurns((key, turn) => asOwner(() => lock.run(key, turn)));

  /** So many other scopes hold the key to read, until `endReaders`. */
  let endReaders;
  async function beginReaders({ key, readers }) {
    const over = new Promise((resolve) => {
      endReaders = resolve;
    });
    await wide(
      readers,
      () =>
        new Promise((resolve, reject) => {
          const read = () => {
            resolve();
            return over;
          };
          asOwner(() => lock.run(key, read, { mode: 'read', leaseMs: longMs })).catch(reject);
        }),
    );
  }

  return {
    useKeys,
    oneAtATime,
    manyAtOnce,
    beginTurns: turns.begin,
    turns: turns.measure,
    beginReaders,
    reads: ({ key, durationMs }) => timed(durationMs, () => cycle(key, { mode: 'read' })),
    async close() {
      await turns.end();
      endReaders?.();
      await close();
    },
  };
});

/** So many owners on one key, which queue again after each turn. Between two measurements one of them keeps the key. */
function createTurns(runOn) {
  let isOver = false;
  let isPaused = false;
  let count = 0;
  let onPaused;
  let resume = () => {};
  let loops;

  function turn() {
    count += 1;
    if (!isPaused) return undefined;
    return new Promise((resolve) => {
      resume = resolve;
      onPaused();
    });
  }

  /** Lets turns go by until `until` resolves; returns how many there were, and how long they took. */
  async function runUntil(until) {
    isPaused = false;
    count = 0;
    const fromUs = nowUs();
    resume();
    await until();
    const figures = { count, eachUs: (nowUs() - fromUs) / count };
    const paused = new Promise((resolve) => {
      onPaused = resolve;
    });
    isPaused = true;
    await paused;
    return figures;
  }

  return {
    /** Resolves when all have queued and had a turn. */
    async begin({ key, waiters }) {
      const loop = async () => {
        while (!isOver) await runOn(key, turn);
      };
      await runUntil(async () => {
        loops = wide(waiters, loop);
        while (count < waiters) await sleep(1);
      });
    },
    measure: ({ durationMs }) => runUntil(() => sleep(durationMs)),
    async end() {
      isOver = true;
      isPaused = false;
      resume();
      await loops;
    },
  };
}

async function timed(durationMs, work) {
  const tookUs = [];
  const endUs = nowUs() + durationMs * 1000;
  for (let fromUs = nowUs(); fromUs < endUs; ) {
    await work();
    const toUs = nowUs();
    tookUs.push(toUs - fromUs);
    fromUs = toUs;
  }
  return { count: tookUs.length, p50Us: median(tookUs) };
}

function wide(width, loop) {
  return Promise.all(Array.from({ length: width }, loop));
}
