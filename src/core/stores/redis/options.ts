import { boolean, milliseconds, type Rules, text, wholeNumber } from '../../model/validate.ts';
import { type RedisClient, redisClient } from './drivers/driver-of.ts';

/** Which server keeps the locks, and under which names. */
export interface RedisStoreOptions {
  /** The application's client, of ioredis, iovalkey or node-redis. It is neither changed nor closed. */
  readonly client: RedisClient;
  /** Before every key and channel; without braces and white space. Default `reenlock:`. */
  readonly prefix?: string | undefined;
  /**
   * How many replicas must have a grant or a renewal before it counts. This adds two round trips to a grant and one to a
   * renewal, on connections of the store's own. If replicas are missing, nothing is granted or renewed. Default 0.
   */
  readonly waitReplicas?: number | undefined;
  /**
   * How long the last fence of a key is remembered after its last use, in milliseconds, and at most 100 000 longer: as long as
   * that, fences rise even if the server's clock is set back. Use the same in all processes. 60 000 at least, default
   * 3 600 000.
   */
  readonly recordTtlMs?: number | undefined;
  /**
   * Whether a free key that nobody waits for is locked by plain commands in place of a script, which costs the server and
   * this process less, and 4 kB a key while it is held. It has no effect on Redis before 7.0, without the rights `+xadd +xdel
   * +xrange`, with `waitReplicas`, and with `createCluster` of node-redis. Set it to false beside processes with a build of
   * this package from before thin locks: they get errors for such keys. Default true.
   */
  readonly thinLocks?: boolean | undefined;
}

/** What each option must be. */
export const redisStoreRules: Rules<RedisStoreOptions> = {
  client: redisClient,
  prefix: text(/^[^{}\s]*$/, 'a string without braces and white space'),
  waitReplicas: wholeNumber(0, 100),
  recordTtlMs: milliseconds(60_000),
  thinLocks: boolean,
};
