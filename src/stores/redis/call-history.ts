import type { HoldRequest } from '../../core/model/store.ts';
import type { RedisDriver } from './drivers/driver.ts';

/**
 * Knows which acquires of this process may still reach the server. A call that was answered on the connection on which it was
 * sent has arrived once and is over. Any other call may arrive later, or twice: after a reconnect the client sends it
 * again, and the old connection may deliver it late.
 */
export class CallHistory {
  readonly #driver: RedisDriver;
  /** How many acquires of each hold may still reach the server. The caller passes one object with every call about a hold. */
  readonly #openAcquires = new WeakMap<HoldRequest, { count: number }>();

  constructor(driver: RedisDriver) {
    this.#driver = driver;
  }

  /**
   * An acquire is about to be sent. Call the returned function when it was answered; a second call of it does nothing. It
   * returns whether a copy of this acquire, or of an earlier one of the same hold, may still reach the server.
   */
  acquireSent(request: HoldRequest): () => boolean {
    const epoch = this.#driver.connectionEpoch();
    let acquires = this.#openAcquires.get(request);
    if (acquires === undefined) {
      acquires = { count: 0 };
      this.#openAcquires.set(request, acquires);
    }
    acquires.count += 1;
    let isOpen = true;
    return () => {
      if (isOpen && this.#driver.isSameEpoch(epoch)) acquires.count -= 1;
      isOpen = false;
      return acquires.count > 0;
    };
  }

  /** Whether an acquire of a hold may still reach the server. It may, if this store was never asked for the hold. */
  mayAcquireArrive(request: HoldRequest): boolean {
    return this.#openAcquires.get(request)?.count !== 0;
  }
}
