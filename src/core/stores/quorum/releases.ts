import { type Clock, elapsedMs } from '../../base/clock.ts';
import type { HoldRequest, ReleaseReply, ReleaseTerms } from '../../model/store.ts';
import type { QuorumHold } from './hold.ts';
import type { Answer, QuorumNode } from './node.ts';

const firstRetryMs = 50;
const lastRetryMs = 10_000;

/** The further tries at one node. */
class Retry {
  /** Whether there was one. */
  hasBegun = false;
  #isStopped = false;
  #endPause: () => void = () => {};

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** From now on there is none, and no pause before one. */
  stop(): void {
    this.#isStopped = true;
    this.#endPause();
  }

  /** Resolves after `ms`, or with `stop`; the timer ends with it. */
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

/** Gives holds back to single nodes, and goes on until each has answered or nothing can be left there. */
export class QuorumReleases {
  readonly #clock: Clock;
  /** By what was asked of each node. */
  readonly #retries = new WeakMap<HoldRequest, Retry>();
  /**
   * What a node answered, in time or late, when it released, by the same. It may forget that once it has answered: a release
   * that is repeated, as no quorum answered, finds it here.
   */
  readonly #heard = new WeakMap<HoldRequest, ReleaseReply>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Gives back what a node was asked for last, as `give` does, unless it has said already that it has released. */
  giveOnce(hold: QuorumHold, node: QuorumNode, terms: ReleaseTerms): Promise<Answer<ReleaseReply>> {
    const request = node.requestOf(hold.request);
    const reply = this.#heard.get(request);
    return reply === undefined ? this.give(hold, node, request, terms) : Promise.resolve({ kind: 'answered', reply });
  }

  /** A quorum was heard, or the hold is asked for anew. */
  forget(request: HoldRequest): void {
    this.#heard.delete(request);
  }

  /**
   * Gives back what a node was asked for by `request`. Answers with what came of the first try; others follow in the
   * background, for as long as the lease or a tombstone may last. They take the place of those that an earlier release
   * began.
   */
  give(hold: QuorumHold, node: QuorumNode, request: HoldRequest, terms: ReleaseTerms): Promise<Answer<ReleaseReply>> {
    this.#retries.get(request)?.stop();
    const retry = new Retry();
    this.#retries.set(request, retry);
    const send = (): Promise<Answer<ReleaseReply>> =>
      node.call((store) => {
        const answer = Promise.resolve(store.release(request, terms)).then((reply) => {
          // Late, it ends the tries as well.
          retry.stop();
          if (reply.status === 'released' || reply.status === 'expired') this.#heard.set(request, reply);
          return reply;
        });
        return hold.track(node, answer);
      });
    const forMs = Math.max(terms.tombstoneMs, hold.leaseMs);
    const first = send();
    void hold.track(node, this.#goOn(send, forMs, first, retry));
    return first;
  }

  /**
   * No more tries for a hold: its caller is told that the release failed, and makes its own. Answers whether a node was
   * asked again.
   */
  stop(hold: QuorumHold, nodes: readonly QuorumNode[]): boolean {
    const retries = nodes.map((node) => this.#retries.get(node.requestOf(hold.request)));
    for (const retry of retries) retry?.stop();
    return retries.some((retry) => retry?.hasBegun);
  }

  async #goOn(
    send: () => Promise<Answer<ReleaseReply>>,
    forMs: number,
    first: Promise<Answer<ReleaseReply>>,
    retry: Retry,
  ): Promise<void> {
    const start = this.#clock.now();
    let answer = await first;
    for (let pauseMs = firstRetryMs; answer.kind !== 'answered'; pauseMs = Math.min(2 * pauseMs, lastRetryMs)) {
      const nextMs = pauseMs * (0.5 + this.#clock.jitter());
      if (retry.isStopped || elapsedMs(this.#clock.now(), start) + nextMs > forMs) return;
      await retry.pause(this.#clock, nextMs);
      if (retry.isStopped) return;
      retry.hasBegun = true;
      answer = await send();
    }
  }
}
