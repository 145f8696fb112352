/**
 * One subscription a channel for all waiters of the process, made with the first and ended with the last. A message
 * wakes one waiter, the one that has slept longest: the lock can go to one only. A message that finds nobody asleep
 * is kept for the next, who may have asked just before it came.
 */
export function createWakeUps(subscriber) {
  const channels = new Map();

  subscriber.on('message', (name) => {
    const channel = channels.get(name);
    if (channel === undefined) return;
    const [first] = channel.asleep;
    if (first === undefined) channel.pending = true;
    else first();
  });

  function open(name) {
    const channel = { members: 0, asleep: new Set(), pending: false, subscribed: subscriber.subscribe(name) };
    channels.set(name, channel);
    return channel;
  }

  async function join(name) {
    const channel = channels.get(name) ?? open(name);
    channel.members += 1;
    await channel.subscribed;
    return {
      wake: (atMostMs) => sleep(channel, atMostMs),
      leave() {
        channel.members -= 1;
        if (channel.members > 0) return;
        channels.delete(name);
        void subscriber.unsubscribe(name);
      },
    };
  }

  return { has: (name) => channels.has(name), join, close: () => subscriber.quit() };
}

function sleep(channel, atMostMs) {
  if (channel.pending) {
    channel.pending = false;
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      channel.asleep.delete(wake);
      resolve();
    };
    const timer = setTimeout(wake, atMostMs);
    channel.asleep.add(wake);
  });
}
