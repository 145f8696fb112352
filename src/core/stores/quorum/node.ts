import type { Clock, Instant, Timer } from '../../base/clock.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { LockStoreError } from '../../model/errors.ts';
import type { HoldRequest, LockStore } from '../../model/store.ts';

/** What came of one call to one node. `failed`: it answered with an error, and nothing was done. */
export type Answer<T> =
  | { readonly kind: 'answered'; readonly reply: T }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'unreachable' | 'failed'; readonly error: unknown };

/** Of a hold id on a node that was renamed there. */
const suffix = /~(\d+)$/;

/** One store of a quorum: its deadline, and what is known of its clock. */
export class QuorumNode {
  readonly store: LockStore;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #isSilent = false;
  #offsetMs: number | undefined;
  readonly #requests = new WeakMap<HoldRequest, HoldRequest>();

  constructor(store: LockStore, clock: Clock, timeoutMs: number) {
    this.store = store;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Whether it let its latest deadline pass: where others suffice, nobody waits for it. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Its clock less this machine's monotonic one, by the latest reply; late by what the call took to reach it. */
  get offsetMs(): number | undefined {
    return this.#offsetMs;
  }

  /** To be called with the time in a reply of its store. */
  noteClock(sent: Instant, nowMs: number): void {
    this.#offsetMs = nowMs - sent.monoMs;
  }

  /**
   * The request as this node is asked it: a writer's, like all on a quorum, and with an `unanswered` of its own, since another
   * node's silence says nothing of this one.
   */
  requestOf(request: HoldRequest): HoldRequest {
    let own = this.#requests.get(request);
    if (own === undefined) {
      own = { ...request, mode: 'write' };
      this.#requests.set(request, own);
    }
    return own;
  }

  /**
   * The next calls about a request go by another hold id here, as a try is given back: a copy of that release may come
   * late, and would take away what the next try was granted.
   */
  rename(request: HoldRequest): void {
    const own = this.requestOf(request);
    const count = Number(suffix.exec(own.holdId)?.[1] ?? 0) + 1;
    this.#requests.set(request, { ...own, holdId: `${request.holdId}~${count}`, unanswered: 0 });
  }

  /** Makes a call with a deadline; never rejects. A call that was given up may still have its effect. */
  call<T>(run: (store: LockStore) => MaybePromise<T>): Promise<Answer<T>> {
    return new Promise((resolve) => {
      // Started with the call, cancelled by its answer. One turn more than the deadline: after a blocked event loop,
      // timers come first, and the answer may be there.
      let timer: Timer = this.#clock.after(this.#timeoutMs, () => {
        timer = this.#clock.after(0, () => {
          this.#isSilent = true;
          resolve({ kind: 'timeout' });
        });
      });
      const settle = (answer: Answer<T>): void => {
        timer.cancel();
        this.#isSilent = false;
        resolve(answer);
      };
      started(() => run(this.store)).then(
        (reply) => settle({ kind: 'answered', reply }),
        (error: unknown) => settle({ kind: isRefusal(error) ? 'failed' : 'unreachable', error }),
      );
    });
  }
}

/** The caller's hold id, by that of a node. */
export function callersId(holdId: string): string {
  return holdId.replace(suffix, '');
}

/** A store that throws instead of rejecting has failed the same. */
async function started<T>(run: () => MaybePromise<T>): Promise<T> {
  return run();
}

function isRefusal(error: unknown): boolean {
  return error instanceof LockStoreError && error.outcome === 'not-applied';
}
