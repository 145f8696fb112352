import { randomUUID } from 'node:crypto';
import { QuorumFailure, QuorumStore, type QuorumStoreOptions } from 'reenlock/redis';
import type { Clock } from '../../../src/core/base/clock.ts';
import type { AcquireReply, LockStore } from '../../../src/core/model/store.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { ManualClock } from '../clock/manual-clock.ts';
import { FakeStore } from './fake-store.ts';
import type { Outcome } from './set-up.ts';

/** A quorum of nodes in memory whose calls go wrong when a test says so, on a clock that the test moves. */
export class QuorumStage extends StoreStage {
  readonly clock: ManualClock = new ManualClock();
  readonly nodes: readonly FakeStore[];
  readonly #options: Partial<QuorumStoreOptions>;

  constructor(count: number, options: Partial<QuorumStoreOptions> = {}) {
    super();
    this.nodes = Array.from({ length: count }, () => new FakeStore(this.clock));
    this.#options = options;
    this.store = this.another();
  }

  /** The same nodes as another process sees them. */
  another(options: Partial<QuorumStoreOptions> = {}, clock: Clock = this.clock): QuorumStore {
    return new QuorumStore({ stores: this.nodes, ...this.#options, ...options }, clock);
  }

  /** One process's stage for the same nodes. */
  sibling(options: Partial<QuorumStoreOptions> = {}): StoreStage {
    const stage = new StoreStage();
    stage.store = this.another(options);
    return stage;
  }

  /** How many nodes have a hold on the key. */
  async copies(id = 'order:42'): Promise<number> {
    const replies = await Promise.all(this.nodes.map((node) => node.inspect(id)));
    return replies.reduce((sum, { holds }) => sum + holds.length, 0);
  }
}

/** How the nodes answered to a call that failed. */
export function answersOf(outcome: Outcome<unknown>): readonly string[] {
  const { cause } = Object(outcome.error) as { cause?: unknown };
  if (cause instanceof QuorumFailure) return cause.nodes;
  throw new Error(`Expected a failed quorum, got ${JSON.stringify(outcome.value)} ${outcome.error}`);
}

export function fenceOf(outcome: Outcome<AcquireReply>): number {
  if (outcome.value?.status !== 'granted') throw new Error(`Expected a grant, got ${JSON.stringify(outcome.value)}`);
  return outcome.value.grant.fence;
}

/** A hold put on single nodes, past the quorum: what another client, or an earlier try, left there. */
export async function putOn(nodes: readonly LockStore[], owner: string, leaseMs = 60_000): Promise<void> {
  const request = {
    id: 'order:42',
    holdId: `hold-${randomUUID()}`,
    owner,
    process: 'elsewhere',
    claimMs: 1_000,
    mode: 'write' as const,
    priority: 0,
  };
  for (const node of nodes) await node.acquire(request, { leaseMs, queue: false, maxWaiters: 1, livenessMs: 1_000 });
}
