const { describeStoreContract } = require('reenlock/testing/contract');
const { harness } = require('./store.cjs');

describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'CountingStore', harness);
