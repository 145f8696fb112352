import { afterEach, beforeEach, describe, it } from 'node:test';
import { expect } from 'expect';
import { describeStoreContract } from 'reenlock/testing/contract';
import { harness } from './store.cjs';

describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'CountingStore', harness);
