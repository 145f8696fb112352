import type { HoldRequest } from '../../core/model/store.ts';
import type { RedisDriver } from './drivers/driver.ts';

/**
 * Knows which acquires of this process may still reach the server. A call that got its reply on the connection on which it was
 * sent has arrived exactly once. Any other call may arrive later, or twice: after a reconnect the client sends it again, and
 * the old connection may deliver it late.
 */
export class CallHistory {
  readonly #driver: RedisDriver;
  /** How many acquires of each hold may still reach the server. The caller passes one object with every call about a hold. */
  readonly #openAcquires = new WeakMap<HoldRequest, { count: number }>();

  constructor(driver: RedisDriver) {
    this.#driver = driver;
  }

  /**
   * Call it before an acquire is sent, and the returned function after its reply; a second call of that does nothing. It returns
   * whether a copy of this acquire, or of an earlier one of the same hold, may still reach the server.
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

  /** Whether an acquire of a hold may still reach the server. True if this store was never asked for the hold. */
  mayAcquireArrive(request: HoldRequest): boolean {
    return this.#openAcquires.get(request)?.count !== 0;
  }
}
