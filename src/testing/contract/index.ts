/** For the tests of a store of your own: `reenlock/testing/contract`. */

export { describeStoreContract } from './contract.ts';
export type { StoreFault, StoreHarness, StoreLoss } from './harness.ts';
export type { Expect, Matchers, TestRunner } from './runner.ts';
