import { StoreStage } from '../../support/stores/store-stage.ts';
import { describeEdges } from './edges.ts';
import { describeEnding } from './ending.ts';
import { describeFailing } from './failing.ts';
import { describeFences } from './fences.ts';
import { describeGranting } from './granting.ts';
import { describeHandOff } from './hand-off.ts';
import type { StoreHarness } from './harness.ts';
import { describeListing } from './listing.ts';
import { describeLiveness } from './liveness.ts';
import { describeModes } from './modes.ts';
import { describeNode } from './node.ts';
import { describePolling } from './polling.ts';
import { describePriority } from './priority.ts';
import { describeQueue } from './queue.ts';

/** The contract of `src/core/model/store.ts`, clause by clause, for one store. */
export function describeContract(name: string, harness: StoreHarness): void {
  describe(`${name} keeps the contract of a store`, () => {
    const stage = new StoreStage();
    const contract = { harness, stage, itQueues: harness.lacks?.includes('queue') ? notThere : it };
    beforeEach(async () => {
      stage.store = await harness.create();
    });
    afterEach(() => stage.end());

    it.each(['queue', 'handOff', 'reachability', 'modes'] as const)(
      'The store says truthfully whether it has %s',
      (capability) => {
        expect(stage.store.capabilities[capability]).toBe(!harness.lacks?.includes(capability));
      },
    );

    it('The store says truthfully whether it keeps edges', () => {
      expect([stage.store.capabilities.edges === true, stage.store.edges !== undefined]).toEqual(
        Array(2).fill(!harness.lacks?.includes('edges')),
      );
    });

    describeGranting(contract);
    describeQueue(contract);
    describeHandOff(contract);
    describePolling(contract);
    describeEnding(contract);
    describeFences(contract);
    describeLiveness(contract);
    describeFailing(contract);
    describeModes(contract);
    describePriority(contract);
    describeListing(contract);
    if (harness.isNode) describeNode(contract);
    if (!harness.lacks?.includes('edges')) describeEdges(contract);
  });
}

const notThere = Object.assign(() => {}, { each: () => () => {} });
