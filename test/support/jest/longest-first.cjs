// Jest starts first what took longest in the last run, so that no worker is left with a long suite at the end. In a fresh
// clone there was none: until it knows better, these are taken to be the longest ones, in this order, and stores and
// processes to take longer than the rest.
const { relative, sep } = require('node:path');
const { default: Sequencer } = require('@jest/test-sequencer');
const { longest } = require('./longest.json');

const rootDir = `${__dirname}/../../..`;
const slowRooms = /^test.(cli|docs|examples|fault|package|parity|stores)./;

module.exports = class LongestFirst extends Sequencer {
  time(test) {
    return super.time(test) ?? guessed(relative(rootDir, test.path));
  }
};

function guessed(path) {
  const place = longest.indexOf(path.replaceAll(sep, '/'));
  if (place >= 0) return (1 + longest.length - place) * 1_000;
  return slowRooms.test(path) ? 500 : 100;
}
