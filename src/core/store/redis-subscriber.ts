import type { RedisOptions } from 'ioredis';

/** What a connection of the store's own has for its subscriptions, in place of what the client that it is made from has. */
export const subscriberOptions: RedisOptions = {
  // Channels are named in full by the scripts: a key prefix must not be put before them.
  keyPrefix: '',
  maxRetriesPerRequest: null,
  // It would leave the rejection unhandled, which ends the process, where the connection is closed meanwhile.
  autoResubscribe: false,
  // For the same reason, no other database is selected: channels belong to none.
  db: 0,
  lazyConnect: false,
  enableOfflineQueue: true,
  // A ping that was given up would pass for one that was answered.
  commandTimeout: undefined,
};
