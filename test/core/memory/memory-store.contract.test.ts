import { describeStoreContract } from 'reenlock/testing/contract';
import { MemoryStore } from '../../../src/core/memory/memory-store.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';

let clock = new ManualClock();

describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'MemoryStore', {
  async create() {
    clock = new ManualClock();
    return new MemoryStore({ clock });
  },
  elapse: (ms) => clock.advance(ms),
  losses: [
    {
      name: 'a new store took its place',
      async happen() {
        await clock.advance(1);
        return new MemoryStore({ clock });
      },
    },
  ],
  isNode: true,
  // Nothing can fail in memory.
  faults: [],
});
