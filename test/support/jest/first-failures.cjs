const { relative } = require('node:path');

/**
 * Prints the first failures of a run at the moment they happen. Jest itself prints what failed in a file when the whole
 * file is over.
 */
module.exports = class FirstFailures {
  #left = 3;

  onTestCaseResult({ path }, { status, fullName, failureMessages }) {
    if (status !== 'failed' || this.#left === 0) return;
    this.#left -= 1;
    const [reason = ''] = failureMessages.map((message) => message.split('\n', 1)[0]);
    process.stderr.write(`FAIL at once: ${relative(process.cwd(), path)} › ${fullName}\n  ${reason}\n`);
  }
};
