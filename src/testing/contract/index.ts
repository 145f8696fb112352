/** For the tests of your own store: `reenlock/testing/contract`. */

export { describeStoreContract } from './contract.ts';
export type { StoreFault, StoreHarness, StoreLoss } from './harness.ts';
export type { Expect, Matchers, TestRunner } from './runner.ts';
