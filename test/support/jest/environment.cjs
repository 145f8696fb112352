const asyncHooks = require('node:async_hooks');
const { TestEnvironment } = require('jest-environment-node');

/** How long a check waits after a test has failed: what it looks for may never happen. */
const shortPatienceMs = 500;

const { AsyncLocalStorage } = asyncHooks;
/** So on Node 20. From 22 on it can't be replaced, and from 24 on contexts cost promises nothing. */
const isReplaceable = Object.getOwnPropertyDescriptor(asyncHooks, 'AsyncLocalStorage').writable === true;

/**
 * Node's environment for tests, for a suite that is fast and fails fast.
 *
 * - The async contexts that a file made are disabled when it is over. Up to Node 22 each context that was ever used costs
 *   every later promise of the process, and each file loads its own copies of what makes them.
 * - After its third failure, with `--bail` after its first, a file runs no more tests: a broken line fails most of them,
 *   each after its full timeout.
 * - `global.patienceMs` says how long helpers wait: two thirds of the timeout of the test or hook that runs, so that they
 *   say what did not happen before jest says only that the test took too long.
 * - `leaks.ts` looks after all other hooks of a file, although jest loads it first.
 */
module.exports = class FailFast extends TestEnvironment {
  #failures = 0;
  #maxFailures;
  #contexts = [];

  constructor(config, context) {
    super(config, context);
    // With --bail one is enough.
    this.#maxFailures = config.globalConfig.bail || 3;
  }

  async setup() {
    await super.setup();
    if (!isReplaceable) return;
    const contexts = this.#contexts;
    asyncHooks.AsyncLocalStorage = class extends AsyncLocalStorage {
      constructor(...options) {
        super(...options);
        contexts.push(this);
      }
    };
  }

  async teardown() {
    if (isReplaceable) asyncHooks.AsyncLocalStorage = AsyncLocalStorage;
    for (const context of this.#contexts) context.disable();
    await super.teardown();
  }

  async handleTestEvent({ name, test, hook, describeBlock }, { testTimeout, rootDescribeBlock: { hooks } }) {
    if (name === 'run_start') hooks.sort((a, b) => isLeakHook(a) - isLeakHook(b));
    if (name === 'test_start') this.global.patienceMs = patience(test.timeout ?? testTimeout);
    if (name === 'hook_start' && hook.type.endsWith('All'))
      this.global.patienceMs = patience(hook.timeout ?? testTimeout);
    if (name === 'test_fn_failure' || name === 'hook_failure') this.global.patienceMs = shortPatienceMs;
    if (name === 'test_done' && test.errors.length > 0) this.#failures += 1;
    if (this.#failures < this.#maxFailures) return;
    if (name === 'test_start') test.mode = 'skip';
    if (name === 'run_describe_start') describeBlock.mode = 'skip';
  }
};

function isLeakHook({ type, fn }) {
  return type === 'afterEach' && fn.name === 'lookForLeaks';
}

function patience(timeoutMs) {
  return (timeoutMs * 2) / 3;
}
