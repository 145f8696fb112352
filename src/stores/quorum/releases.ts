import { type Clock, elapsedMs } from '../../core/base/clock.ts';
import { inBackground } from '../../core/base/safely.ts';
import type { HoldRequest, ReleaseReply, ReleaseTerms } from '../../core/model/store.ts';
import type { QuorumHold } from './hold.ts';
import type { CallResult, QuorumNode } from './node.ts';

const firstRetryMs = 50;
const lastRetryMs = 10_000;

/** The retries at one node. */
class Retry {
  /** Whether a retry was sent. */
  hasBegun = false;
  #isStopped = false;
  #endPause: () => void = () => {};

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Prevents further retries and ends the pause before the next one. */
  stop(): void {
    this.#isStopped = true;
    this.#endPause();
  }

  /** Resolves after `ms`, or with `stop`. The timer ends with it. */
  pause(clock: Clock, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = clock.after(ms, resolve);
      this.#endPause = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}

/** Releases holds on single nodes, and tries again until each has replied or nothing can be left there. */
export class QuorumReleases {
  readonly #clock: Clock;
  /** By the request of each node. */
  readonly #retries = new WeakMap<HoldRequest, Retry>();
  /**
   * The reply of each node to a release, in time or late; also by the request of the node. The node may forget a release after
   * its reply. If there was no quorum and the release is repeated, it finds the reply here.
   */
  readonly #replies = new WeakMap<HoldRequest, ReleaseReply>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Releases the latest request on a node, as `release` does, unless the node has already released it. */
  releaseOnce(hold: QuorumHold, node: QuorumNode, terms: ReleaseTerms): Promise<CallResult<ReleaseReply>> {
    const request = node.requestOf(hold.request);
    const reply = this.#replies.get(request);
    return reply === undefined ? this.release(hold, node, request, terms) : Promise.resolve({ kind: 'replied', reply });
  }

  /** Forgets a node's reply: a quorum has replied, or the hold is acquired again. */
  forget(request: HoldRequest): void {
    this.#replies.delete(request);
  }

  /**
   * Releases a request on a node and returns the result of the first try. Retries follow in the background, for as long as
   * the lease or a tombstone may last. They replace the retries of an earlier release.
   */
  release(
    hold: QuorumHold,
    node: QuorumNode,
    request: HoldRequest,
    terms: ReleaseTerms,
  ): Promise<CallResult<ReleaseReply>> {
    this.#retries.get(request)?.stop();
    const retry = new Retry();
    this.#retries.set(request, retry);
    const send = (): Promise<CallResult<ReleaseReply>> =>
      node.call((store) => {
        const call = Promise.resolve(store.release(request, terms)).then((reply) => {
          // A late reply also ends the retries.
          retry.stop();
          if (reply.status === 'released' || reply.status === 'expired') this.#replies.set(request, reply);
          return reply;
        });
        return hold.track(node, call);
      });
    const forMs = Math.max(terms.tombstoneMs, hold.leaseMs);
    const first = send();
    inBackground(hold.track(node, this.#retry(send, forMs, first, retry)));
    return first;
  }

  /**
   * Ends the retries of a hold: the release fails, and its caller makes its own retries. Returns whether a retry was sent to any
   * node.
   */
  stop(hold: QuorumHold, nodes: readonly QuorumNode[]): boolean {
    const retries = nodes.map((node) => this.#retries.get(node.requestOf(hold.request)));
    for (const retry of retries) retry?.stop();
    return retries.some((retry) => retry?.hasBegun);
  }

  async #retry(
    send: () => Promise<CallResult<ReleaseReply>>,
    forMs: number,
    first: Promise<CallResult<ReleaseReply>>,
    retry: Retry,
  ): Promise<void> {
    const start = this.#clock.now();
    let result = await first;
    for (let pauseMs = firstRetryMs; result.kind !== 'replied'; pauseMs = Math.min(2 * pauseMs, lastRetryMs)) {
      const nextMs = pauseMs * (0.5 + this.#clock.jitter());
      if (retry.isStopped || elapsedMs(this.#clock.now(), start) + nextMs > forMs) return;
      await retry.pause(this.#clock, nextMs);
      if (retry.isStopped) return;
      retry.hasBegun = true;
      result = await send();
    }
  }
}
