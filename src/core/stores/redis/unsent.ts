import type { HoldRequest, ReleaseReply } from '../../model/store.ts';
import type { RedisDriver } from './drivers/driver.ts';
import { isTimedOut } from './errors.ts';

/**
 * Releases that the client keeps in its own queue until it has a connection. A release is tried again until it is answered.
 * Without a connection, a further try gets the reply of the call that waits already, or the client would queue them all.
 * This is not done with `autoResendUnfulfilledCommands: false`: such a client drops what it has sent when its connection
 * ends, and never settles it.
 */
export class RedisUnsent {
  readonly #driver: RedisDriver;
  readonly #replies = new Map<string, Promise<ReleaseReply>>();
  /** The releases among them that the client gave up by its `commandTimeout`: it keeps the calls and still sends them. */
  readonly #timedOut = new Set<string>();

  constructor(driver: RedisDriver) {
    this.#driver = driver;
  }

  /** Calls `send`, or returns the reply of the call that waits for a connection. */
  run({ holdId }: HoldRequest, send: () => Promise<ReleaseReply>): Promise<ReleaseReply> {
    if (!this.#driver.settlesAll) return send();
    if (this.#driver.isReady) {
      if (this.#timedOut.size > 0) this.#forgetTimedOut();
      return send();
    }
    const known = this.#replies.get(holdId);
    if (known !== undefined) return known;
    const reply = send();
    this.#replies.set(holdId, reply);
    const forget = (): void => void this.#replies.delete(holdId);
    reply.then(forget, (error: unknown) => {
      if (isTimedOut(error)) this.#timedOut.add(holdId);
      else forget();
    });
    return reply;
  }

  #forgetTimedOut(): void {
    for (const holdId of this.#timedOut) this.#replies.delete(holdId);
    this.#timedOut.clear();
  }
}
