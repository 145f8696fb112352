import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '../lib/connect.mjs';

const pollMs = 20;

/**
 * Not a lock: the least that a hand-off over Redis can cost. `unlock` publishes, and who has subscribed goes on when the
 * message arrives. Where nobody had subscribed yet, the key is free, and is found so by the next to look.
 */
export function create() {
  let client;
  let subscriber;
  let wake;

  async function lock(key) {
    const message = new Promise((resolve) => {
      wake = () => resolve(true);
    });
    await subscriber.subscribe(key);
    while ((await client.set(takenMark(key), 'no', 'NX')) !== 'OK') {
      if (await Promise.race([message, sleep(pollMs, false)])) break;
    }
    setImmediate(() => subscriber.unsubscribe(key)); // Later: it is no part of the hand-off.
    return key;
  }

  return {
    async setup({ redis }) {
      client = await connect(redis);
      subscriber = await connect(redis);
      subscriber.on('message', () => wake?.());
    },
    lock,
    async unlock(key) {
      if ((await client.publish(key, 'yours')) === 0) await client.del(takenMark(key));
    },
    close: () => Promise.all([client.quit(), subscriber.quit()]),
  };
}

function takenMark(key) {
  return `${key}:taken`;
}
