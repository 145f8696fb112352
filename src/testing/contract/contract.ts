import { describeEdges } from './clauses/edges.ts';
import { describeEnding } from './clauses/ending.ts';
import { describeFailing } from './clauses/failing.ts';
import { describeFences } from './clauses/fences.ts';
import { describeGranting } from './clauses/granting.ts';
import { describeHandOff } from './clauses/hand-off.ts';
import { describeListing } from './clauses/listing.ts';
import { describeLiveness } from './clauses/liveness.ts';
import { describeModes } from './clauses/modes.ts';
import { describeNesting } from './clauses/nesting.ts';
import { describeNode } from './clauses/node.ts';
import { describeOneOwner } from './clauses/one-owner.ts';
import { describePermits } from './clauses/permits/counting.ts';
import { describePermitFences } from './clauses/permits/fences.ts';
import { describeMixing } from './clauses/permits/mixing.ts';
import { describePermitQueue } from './clauses/permits/queueing.ts';
import { describePolling } from './clauses/polling.ts';
import { describePriority, describeQueue } from './clauses/queue.ts';
import { describeReachability } from './clauses/reachability.ts';
import { describeTransfer } from './clauses/transfer.ts';
import type { StoreHarness } from './harness.ts';
import type { TestRunner } from './runner.ts';
import { type Contract, StoreStage } from './stage.ts';

/**
 * Describes the tests that every store must pass, one group for each clause of `LockStore`, with the functions of your test runner.
 * Each test gets a new store from `harness.create`. Call it where `describe` may be called.
 *
 * @example
 * ```ts
 * import * as vitest from 'vitest';
 * import { setTimeout as sleep } from 'node:timers/promises';
 * import { describeStoreContract } from 'reenlock/testing/contract';
 *
 * const create = async () => new MyStore();
 * describeStoreContract(vitest, 'MyStore', { create, elapse: (ms) => sleep(ms + 1), losses: [], faults: [] });
 * ```
 */
export function describeStoreContract(runner: TestRunner, name: string, harness: StoreHarness): void {
  const { describe, it, beforeEach, afterEach, expect } = runner;
  describe(`${name} keeps the contract of a store`, () => {
    const stage = new StoreStage();
    const has: Contract['has'] = (part) => harness.lacks?.includes(part) !== true;
    const itQueues = has('queue') ? it : () => {};
    const contract: Contract = { harness, has, stage, describe, it, itQueues, expect };
    beforeEach(async () => {
      stage.store = await harness.create();
    });
    afterEach(() => stage.end());

    for (const capability of ['queue', 'handOff', 'reachability', 'modes'] as const) {
      it(`The store declares truthfully whether it has ${capability}`, async () => {
        expect(stage.store.capabilities[capability]).toBe(has(capability));
      });
    }

    it('The store declares truthfully whether its keys can have permits', async () => {
      expect(stage.store.capabilities.permits === true).toBe(has('permits'));
    });

    for (const capability of ['edges', 'transfer'] as const) {
      it(`The store declares truthfully whether it has ${capability}`, async () => {
        expect(stage.store.capabilities[capability] === true).toBe(has(capability));
        expect(stage.store[capability] !== undefined).toBe(has(capability));
      });
    }

    describeGranting(contract);
    describeQueue(contract);
    describeHandOff(contract);
    describePolling(contract);
    describeEnding(contract);
    describeFences(contract);
    describeReachability(contract);
    describeLiveness(contract);
    describeFailing(contract);
    describeModes(contract);
    if (has('permits')) {
      describePermits(contract);
      describePermitQueue(contract);
      describePermitFences(contract);
      if (has('nesting')) describeMixing(contract);
    }
    describeOneOwner(contract);
    if (has('nesting')) describeNesting(contract);
    describePriority(contract);
    describeListing(contract);
    if (has('transfer')) describeTransfer(contract);
    if (harness.isNode) describeNode(contract);
    if (has('edges')) describeEdges(contract);
  });
}
