import { type Clock, systemClock } from '../../core/base/clock.ts';
import { lockStore } from '../../core/model/options.ts';
import type { LockStore } from '../../core/model/store.ts';
import { checkOptions, milliseconds, type Rule, type Rules } from '../../core/model/validate.ts';
import { RetryingStore } from '../retrying/retrying-store.ts';
import { Majority } from './majority.ts';
import { QuorumNode } from './node.ts';
import { Quorum } from './quorum.ts';

/** The options of a `QuorumStore`. */
export interface QuorumStoreOptions {
  /** The nodes: three or more stores that share no server, disk or replication. An odd number is best. */
  readonly stores: readonly LockStore[];
  /** The deadline of a call to one node, in milliseconds; short compared with every lease. Default 250. */
  readonly nodeTimeoutMs?: number | undefined;
  /**
   * The longest lease that any process asks for, in milliseconds. A longer one is refused, and a node that restarted does
   * not count for that long. Default 300 000.
   */
  readonly maxLeaseMs?: number | undefined;
}

/**
 * Keeps locks on a majority of independent stores (Redlock): they outlive the loss of the other stores. Waiters queue in their own
 * process. A quorum agrees on a fence before the hold is granted. Throws `LockConfigError` for bad options. Its calls reject with
 * `LockStoreError`, whose `cause` has the results of all nodes (`QuorumFailure`). docs/stores/quorum.md lists what is promised and
 * what is not.
 *
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { configureLocks } from 'reenlock';
 * import { QuorumStore, RedisStore } from 'reenlock/redis';
 *
 * const hosts = ['redis-a', 'redis-b', 'redis-c'];
 * const stores = hosts.map((host) => new RedisStore({ client: new Redis({ host }) }));
 * configureLocks({ store: new QuorumStore({ stores }) });
 * ```
 */
export class QuorumStore extends RetryingStore {
  constructor(options: QuorumStoreOptions, clock: Clock = systemClock) {
    const { stores, nodeTimeoutMs = 250, maxLeaseMs = 300_000 } = checkOptions(options, rules, 'QuorumStore', 'stores');
    const isNeeded = (): boolean => quorum.hasLostQuorum;
    const nodes = stores.map((each) => new QuorumNode(each, clock, nodeTimeoutMs, isNeeded));
    const quorum = new Quorum(clock, nodes, nodeTimeoutMs, maxLeaseMs);
    super(new Majority(quorum), clock);
  }
}

const nodes: Rule = {
  expected: 'an array of three or more different stores whose `capabilities` have `minFence`',
  accepts: (value) =>
    Array.isArray(value) &&
    value.length >= 3 &&
    new Set(value).size === value.length &&
    value.every((each) => lockStore.accepts(each) && (each as LockStore).capabilities.minFence === true),
};

const rules: Rules<QuorumStoreOptions> = {
  stores: nodes,
  nodeTimeoutMs: milliseconds(),
  maxLeaseMs: milliseconds(),
};
