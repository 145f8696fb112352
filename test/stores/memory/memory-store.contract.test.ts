import type { MaybePromise } from '../../../src/core/base/maybe-promise.ts';
import type { HoldRequest, ReleaseReply, ReleaseTerms } from '../../../src/core/model/store.ts';
import { MemoryStore } from '../../../src/core/stores/memory/memory-store.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { describeContract } from '../contract/contract.ts';

watchLeaks();

let clock = new ManualClock();

/** Releases as a caller that made none of the other calls: what the store granted to the same object, it may forget. */
class RememberingStore extends MemoryStore {
  override release(request: HoldRequest, terms: ReleaseTerms): MaybePromise<ReleaseReply> {
    return super.release({ ...request }, terms);
  }
}

describeContract('MemoryStore', {
  async create() {
    clock = new ManualClock();
    return new RememberingStore({ clock });
  },
  elapse: (ms) => clock.advance(ms),
  losses: [
    {
      name: 'a new store took its place',
      async happen() {
        await clock.advance(1);
        return new RememberingStore({ clock });
      },
    },
  ],
  isNode: true,
  // Nothing can fail in memory.
  faults: [],
});
