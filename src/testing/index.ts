/** For the tests of an application: `reenlock/testing`. */

export type { StoreFault, StoreOperation } from './faulty-store.ts';
export {
  configureTestLocks,
  createTestLocks,
  type HistoryEntry,
  type TestClock,
  type TestLocks,
  type TestLocksOptions,
  type WhenWaitingOptions,
} from './test-locks.ts';
