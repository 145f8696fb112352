import { type Clock, elapsedMs } from '../clock.ts';
import type { QuorumHold } from './quorum-hold.ts';
import type { Answer, QuorumNode } from './quorum-node.ts';
import type { ReleaseReply, ReleaseTerms } from './store.ts';

const firstRetryMs = 50;
const lastRetryMs = 10_000;

/** Gives holds back to single nodes, and goes on until each has answered or nothing can be left there. */
export class QuorumReleases {
  readonly #clock: Clock;
  /** By hold, which terms are being retried at a node: the latest ones. */
  readonly #retried = new WeakMap<QuorumHold, Map<QuorumNode, ReleaseTerms>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Answers with what came of the first try; others follow in the background, for `forMs` at most. */
  give(hold: QuorumHold, node: QuorumNode, terms: ReleaseTerms, forMs: number): Promise<Answer<ReleaseReply>> {
    const first = this.#send(hold, node, terms);
    void hold.track(node, this.#retry(hold, node, terms, forMs, first));
    return first;
  }

  #send(hold: QuorumHold, node: QuorumNode, terms: ReleaseTerms): Promise<Answer<ReleaseReply>> {
    return node.call((store) => hold.track(node, store.release(hold.request, terms)));
  }

  async #retry(
    hold: QuorumHold,
    node: QuorumNode,
    terms: ReleaseTerms,
    forMs: number,
    first: Promise<Answer<ReleaseReply>>,
  ): Promise<void> {
    const start = this.#clock.now();
    const retried = this.#retriedOf(hold);
    retried.set(node, terms);
    let answer = await first;
    for (let pauseMs = firstRetryMs; answer.kind !== 'answered'; pauseMs = Math.min(2 * pauseMs, lastRetryMs)) {
      const nextMs = pauseMs * (0.5 + this.#clock.jitter());
      if (elapsedMs(this.#clock.now(), start) + nextMs > forMs) break;
      await new Promise<void>((resolve) => {
        this.#clock.after(nextMs, resolve);
      });
      if (retried.get(node) !== terms) return;
      answer = await this.#send(hold, node, terms);
    }
    if (retried.get(node) === terms) retried.delete(node);
  }

  #retriedOf(hold: QuorumHold): Map<QuorumNode, ReleaseTerms> {
    let retried = this.#retried.get(hold);
    if (retried === undefined) {
      retried = new Map();
      this.#retried.set(hold, retried);
    }
    return retried;
  }
}
