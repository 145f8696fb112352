import type { ServerWarning } from '../../core/model/store.ts';
import type { RedisDriver } from './drivers/driver.ts';

/**
 * Checks whether the calls go to the server of a connection for subscriptions. After a planned change of the primary behind one
 * name they do not: the former primary lives on as a replica, replies to pings, and never gets a message. Checks once for each
 * connection of the client. Only the servers of a cluster forward messages to each other.
 */
export class SameServer {
  readonly #driver: RedisDriver;
  /** The connections of the client that were checked. */
  #checkedOn: unknown;

  constructor(driver: RedisDriver) {
    this.#driver = driver;
  }

  /** Whether the server of the calls counts a listener of a subscribed channel. Undefined if it does not reply. */
  async hasListener(channel: string): Promise<boolean | undefined> {
    const driver = this.#driver;
    const epoch = driver.connectionEpoch();
    if (driver.cluster || !driver.link.isUp || epoch === this.#checkedOn) return undefined;
    const reply = await driver.send(['pubsub', 'numsub', channel]).catch((error: unknown) => driver.codeOf(error));
    if (reply === undefined) return undefined;
    const count = Array.isArray(reply) ? Number(reply[1]) : undefined;
    if (count !== 0) this.#checkedOn = epoch;
    return count === undefined ? undefined : count > 0;
  }
}

/** How many checks in succession must find no listener before there is a warning. */
export const missesUntilWarning = 3;

/**
 * Whether to connect again after this many checks that found no listener: soon at first, since the name may lead to the new
 * primary now, then more and more rarely, at last once in twelve.
 */
export function connectsAgainAfter(misses: number): boolean {
  return misses % 12 === 0 || Number.isInteger(Math.log2(misses));
}

export const apartWarning: ServerWarning = {
  code: 'LOCK_REDIS_APART',
  message:
    "Expected the lock store's calls and its subscription to reach one server, got two: waiters learn of their grants by polling alone. Give the client an address that leads every connection to the primary",
};
