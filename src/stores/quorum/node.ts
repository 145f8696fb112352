import type { Clock, Instant, Timer } from '../../core/base/clock.ts';
import { LockStoreError } from '../../core/model/errors/failures.ts';
import type { AcquireReply, HoldRequest, LockStore } from '../../core/model/store.ts';

/** The result of one call to one node. `failed`: the node replied with an error and did nothing. */
export type CallResult<T> =
  | { readonly kind: 'replied'; readonly reply: T }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'unreachable' | 'failed'; readonly error: unknown };

/** The end of a hold id that was renamed on a node. */
const renameSuffix = /~(\d+)$/;

/** One store of a quorum, with a deadline for its calls and an estimate of its clock. */
export class QuorumNode {
  readonly store: LockStore;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #isSilent = false;
  #hasReplied = false;
  #offsetMs: number | undefined;
  readonly #requests = new WeakMap<HoldRequest, HoldRequest>();
  /** Whether an acquire of each of those requests may still reach the store, by its latest reply. */
  readonly #mayArriveLater = new WeakMap<HoldRequest, boolean>();

  readonly #isNeeded: () => boolean;

  /** `isNeeded` returns whether the connected nodes are too few for a quorum. */
  constructor(store: LockStore, clock: Clock, timeoutMs: number, isNeeded: () => boolean) {
    this.store = store;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#isNeeded = isNeeded;
  }

  /** Whether it had a connection, and has none now. */
  get isLost(): boolean {
    return this.#hasReplied && this.store.link?.isUp === false;
  }

  /** Whether the latest call timed out: if the other nodes suffice, calls do not wait for this one. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** The node's clock minus this machine's monotonic clock, by the latest reply. Too small by the duration of that call. */
  get offsetMs(): number | undefined {
    return this.#offsetMs;
  }

  /** The request for this node: a separate object, and a writer, like all on a quorum. */
  requestOf(request: HoldRequest): HoldRequest {
    let own = this.#requests.get(request);
    if (own === undefined) {
      own = { ...request, mode: 'write' };
      this.#requests.set(request, own);
    }
    return own;
  }

  /**
   * Gives a request another hold id on this node when a try is released. A copy of that release may arrive late, and
   * would otherwise remove what the next try was granted.
   */
  rename(request: HoldRequest): void {
    const own = this.requestOf(request);
    const count = Number(renameSuffix.exec(own.holdId)?.[1] ?? 0) + 1;
    this.#requests.set(request, { ...own, holdId: `${request.holdId}~${count}` });
  }

  /** The store's last `mayArriveLater` for a request of this node; undefined without one. */
  mayArriveLater(request: HoldRequest): boolean | undefined {
    return this.#mayArriveLater.get(request);
  }

  /** Call it with each reply to an acquire, and the time when that was sent. */
  onAcquireReply(request: HoldRequest, sent: Instant, { nowMs, mayArriveLater }: AcquireReply): void {
    this.#offsetMs = nowMs - sent.monoMs;
    if (mayArriveLater !== undefined) this.#mayArriveLater.set(request, mayArriveLater);
  }

  /** Makes a call with a deadline; never rejects. A call that timed out may still have an effect. */
  call<T>(run: (store: LockStore) => Promise<T>): Promise<CallResult<T>> {
    // The other nodes suffice. Otherwise, the connection may be back within the deadline.
    if (this.isLost && !this.#isNeeded()) {
      const cause = this.store.link?.error;
      const error = new LockStoreError('The lock store has no connection', { cause, outcome: 'not-applied' });
      return Promise.resolve({ kind: 'failed', error });
    }
    return new Promise((resolve) => {
      // Started with the call, cancelled by its reply. One tick more than the deadline: after a blocked event loop, timers
      // run first, and the reply may have arrived already.
      let timer: Timer = this.#clock.after(this.#timeoutMs, () => {
        timer = this.#clock.after(0, () => {
          this.#isSilent = true;
          resolve({ kind: 'timeout' });
        });
      });
      const settle = (result: CallResult<T>): void => {
        timer.cancel();
        this.#isSilent = false;
        resolve(result);
      };
      // A store that throws has failed like one that rejects.
      const call = async (): Promise<T> => run(this.store);
      call().then(
        (reply) => {
          this.#hasReplied = true;
          settle({ kind: 'replied', reply });
        },
        (error: unknown) => settle({ kind: isRefusal(error) ? 'failed' : 'unreachable', error }),
      );
    });
  }
}

/** The caller's hold id, for a hold id on a node. */
export function originalId(holdId: string): string {
  return holdId.replace(renameSuffix, '');
}

function isRefusal(error: unknown): boolean {
  return error instanceof LockStoreError && error.outcome === 'not-applied';
}
