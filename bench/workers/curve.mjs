import { createLocks, lock, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { nowUs } from '../lib/clock.mjs';
import { connect } from '../lib/connect.mjs';
import { serve } from '../lib/serve.mjs';
import { median } from '../lib/stats.mjs';

const fillWidth = 500;

const most = 20_000;

await serve(async ({ port }) => {
  const client = await connect(port);
  const store = new RedisStore({ client });
  const locks = createLocks({ store, waitMs: 600_000, maxWaiters: most, maxWaitersPerKey: most });

  const cycle = (key) => runInTrace(() => lock.run(key, () => {}), { locks });

  /** Uses so many keys, once each. */
  async function use({ keys }) {
    let next = 0;
    await wide(fillWidth, async () => {
      while (next < keys) await cycle(`used:${next++}`);
    });
  }

  /** So many cycles on keys that were used before, chosen at random: one at a time, and then many at once. */
  async function cycles({ keys, count, width }) {
    // Each line has keys of its own: none waits for another.
    const anyKey = (line = 0) => `used:${line + width * Math.floor((keys / width - 1) * Math.random())}`;
    const tookUs = [];
    for (let n = 0; n < count; n += 1) {
      const fromUs = nowUs();
      await cycle(anyKey());
      tookUs.push(nowUs() - fromUs);
    }
    const fromUs = nowUs();
    let left = count;
    await wide(width, async (_, line) => {
      while (left-- > 0) await cycle(anyKey(line));
    });
    return { oneUs: median(tookUs), wideUs: (nowUs() - fromUs) / count };
  }

  /** So many owners on one key, who queue again after each turn: how long a turn takes while all the others wait. */
  async function turns({ key, waiters, turns }) {
    let grants = 0;
    let fromUs;
    const from = 100; // By then all have queued: they did so in one write, before the first release.
    let tookUs;
    const turn = () => {
      grants += 1;
      if (grants === from) fromUs = nowUs();
      if (grants === from + turns) tookUs = nowUs() - fromUs;
    };
    await wide(waiters, async () => {
      while (tookUs === undefined) await runInTrace(() => lock.run(key, turn), { locks });
    });
    return { turnUs: tookUs / turns };
  }

  /** So many cycles to read, one at a time, while so many others read. */
  async function reads({ key, readers, count }) {
    let leave;
    const over = new Promise((resolve) => {
      leave = resolve;
    });
    const held = [];
    const others = [];
    for (let n = 0; n < readers; n += 1) {
      held.push(
        new Promise((resolve) => {
          const read = () => {
            resolve();
            return over;
          };
          others.push(runInTrace(() => lock.run(key, read, { mode: 'read' }), { locks }));
        }),
      );
    }
    await Promise.all(held);
    const tookUs = [];
    for (let n = 0; n < count; n += 1) {
      const fromUs = nowUs();
      await runInTrace(() => lock.run(key, () => {}, { mode: 'read' }), { locks });
      tookUs.push(nowUs() - fromUs);
    }
    leave();
    await Promise.all(others);
    return { oneUs: median(tookUs) };
  }

  async function close() {
    await locks.close();
    await client.quit();
  }
  return { use, cycles, turns, reads, close };
});

function wide(width, loop) {
  return Promise.all(Array.from({ length: width }, loop));
}
