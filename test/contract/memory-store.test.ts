import { MemoryStore } from '../../src/core/stores/memory/memory-store.ts';
import { watchLeaks } from '../helpers/leaks.ts';
import { ManualClock } from '../helpers/manual-clock.ts';
import { describeContract } from './contract.ts';

watchLeaks();

let clock = new ManualClock();

describeContract('MemoryStore', {
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
