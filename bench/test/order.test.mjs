import assert from 'node:assert/strict';
import { test } from 'node:test';
import { orderOf } from '../lib/order.mjs';

for (const count of [1, 2, 3, 4, 5, 8]) {
  const names = Array.from({ length: count }, (_, i) => `contender ${i}`);
  const rounds = Array.from({ length: 2 * count }, (_, round) => orderOf(names, round));

  test(`Each of ${count} contenders is measured once a round`, () => {
    for (const order of rounds) assert.deepEqual(order.toSorted(), names.toSorted());
  });

  test(`Each of ${count} contenders stands in each place twice in ${2 * count} rounds`, () => {
    for (const name of names) {
      for (let place = 0; place < count; place += 1) {
        assert.equal(rounds.filter((order) => order[place] === name).length, 2);
      }
    }
  });

  test(`Each of ${count} contenders follows each other one twice in ${2 * count} rounds`, () => {
    for (const first of names) {
      for (const second of names.filter((name) => name !== first)) {
        const follows = (order) => order.indexOf(second) === order.indexOf(first) + 1;
        assert.equal(rounds.filter(follows).length, 2, `${second} after ${first}`);
      }
    }
  });
}
