import type { RedisOptions } from 'ioredis';

/** The options of a connection for subscriptions, in place of those of the client that it is a duplicate of. */
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
