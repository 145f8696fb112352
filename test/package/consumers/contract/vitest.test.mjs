import { describeStoreContract } from 'reenlock/testing/contract';
import * as vitest from 'vitest';
import { harness } from './store.cjs';

describeStoreContract(vitest, 'CountingStore', harness);
