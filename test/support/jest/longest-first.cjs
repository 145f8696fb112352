// Jest starts first what took longest in the last run, so that no worker is left with a long suite at the end. In a fresh
// clone there was none: until it knows better, what waits for servers and processes is taken to be long.
const { default: Sequencer } = require('@jest/test-sequencer');

const guesses = [
  [
    /redis.(sentinel|cluster.faults)|quorum.faults|docs.pages|fault.(server|network)|two-services|board.browser/,
    20_000,
  ],
  [/contract.test|test.(examples|fault).|deadlock.schedules/, 10_000],
  [/test.(docs|package|parity|stores)./, 5_000],
];

module.exports = class LongestFirst extends Sequencer {
  time(test) {
    return super.time(test) ?? guesses.find(([paths]) => paths.test(test.path))?.[1] ?? 1_000;
  }
};
