import { connect } from '../lib/connect.mjs';
import { createWakeUps } from './wake-ups.mjs';

const leaseMs = 30_000;

// KEYS: lock. ARGV: owner, lease in ms. Returns -1 when granted, else what is left of the holder's lease, in ms.
const acquireScript = `
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return -1
end
return redis.call('PTTL', KEYS[1])`;

// KEYS: lock, channel. ARGV: owner, lease in ms. Returns the holds that are left, or -1 when it was not held.
const releaseScript = `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return -1 end
local left = redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return left
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], 'released')
return 0`;

/**
 * The design of Redisson's RLock on ioredis: a hash of owner → count with an expiry; the last release publishes; who
 * waits subscribes, sleeps until the message or the end of the holder's lease, and tries again. No watchdog: nothing
 * here outlives its lease.
 */
export function create() {
  let client;
  let wakeUps;
  let shas;

  const tryLock = (key, owner) => client.evalsha(shas[0], 1, key, owner, leaseMs);

  async function lock(key, owner) {
    const channel = channelOf(key);
    // Where others of this process wait already, the subscription stands, and this first try would be one too many.
    if (!wakeUps.has(channel) && (await tryLock(key, owner)) === -1) return key;
    const waiter = await wakeUps.join(channel);
    try {
      for (;;) {
        const leftMs = await tryLock(key, owner);
        if (leftMs === -1) return key;
        await waiter.wake(leftMs);
      }
    } finally {
      waiter.leave();
    }
  }

  return {
    async setup({ redis }) {
      client = await connect(redis);
      wakeUps = createWakeUps(await connect(redis));
      shas = await Promise.all([acquireScript, releaseScript].map((script) => client.script('LOAD', script)));
    },
    lock,
    async unlock(key, owner) {
      const left = await client.evalsha(shas[1], 2, key, channelOf(key), owner, leaseMs);
      if (left === -1) throw new Error(`${key} was not held`);
    },
    close: () => Promise.all([client.quit(), wakeUps.close()]),
  };
}

function channelOf(key) {
  return `released:${key}`;
}
