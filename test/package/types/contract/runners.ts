import * as nodeTest from 'node:test';
import { expect as standalone } from 'expect';
import type { TestRunner } from 'reenlock/testing/contract';
import * as vitest from 'vitest';

// The functions of each of the three runners are what the contract of a store takes.
export const runners: readonly TestRunner[] = [
  { describe, it, beforeEach, afterEach, expect },
  vitest,
  { ...nodeTest, expect: standalone },
];

// @ts-expect-error `node:test` has no `expect`
export const lacking: TestRunner = nodeTest;
