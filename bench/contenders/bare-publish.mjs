import { connect } from '../lib/connect.mjs';

/**
 * Not a lock: the least that a hand-off over Redis can cost. Whoever asks first has it, `unlock` publishes, and the
 * next to ask has it when that message arrives. The asking costs a command more, before the time that is measured.
 */
export function create() {
  let client;
  let subscriber;
  let wake;
  return {
    async setup({ port }) {
      client = await connect(port);
      subscriber = await connect(port);
      subscriber.on('message', () => wake?.());
    },
    async lock(key) {
      const message = new Promise((resolve) => {
        wake = resolve;
      });
      await subscriber.subscribe(key);
      if ((await client.set(`${key}:asked`, '1', 'NX')) !== 'OK') await message;
      setImmediate(() => subscriber.unsubscribe(key)); // Later: it is no part of the hand-off.
      return key;
    },
    unlock: (key) => client.publish(key, 'yours'),
    close: () => Promise.all([client.quit(), subscriber.quit()]),
  };
}
