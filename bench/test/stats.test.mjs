import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jain, median, overlaps, pairedRatio, percentile, spread } from '../lib/stats.mjs';

test('The median of an odd number of values is the middle one', () => assert.equal(median([9, 1, 5]), 5));

test('The median of an even number of values is the mean of the two in the middle', () => {
  assert.equal(median([10, 1, 4, 2]), 3);
});

test('The median and a percentile of no values are no number', () => {
  assert.ok(Number.isNaN(median([])));
  assert.ok(Number.isNaN(percentile([], 0.5)));
});

test('A percentile is the value of the nearest rank', () => {
  const values = Array.from({ length: 100 }, (_, i) => 100 - i);
  assert.equal(percentile(values, 0.99), 99);
  assert.equal(percentile(values, 0.1), 10);
  assert.equal(percentile(values, 0), 1);
  assert.equal(percentile([7], 0.99), 7);
});

test('Half of the values lie within the spread', () => {
  assert.deepEqual(spread([1, 2, 3, 4, 5, 6, 7, 8]), { value: 4.5, low: 2, high: 6 });
});

test('A paired ratio does not change if both contenders of a round are slowed down alike', () => {
  const [values, references] = [
    [12, 24, 36],
    [10, 20, 30],
  ];
  const slowedDown = [1, 7, 100];
  const slowed = (figures) => figures.map((figure, round) => figure * slowedDown[round]);
  assert.deepEqual(pairedRatio(values, references), { value: 1.2, low: 1.2, high: 1.2 });
  assert.deepEqual(pairedRatio(slowed(values), slowed(references)), pairedRatio(values, references));
});

test("Jain's index is 1 for equal counts, and 1/n if one has everything", () => {
  assert.equal(jain([5, 5, 5, 5]), 1);
  assert.equal(jain([20, 0, 0, 0]), 0.25);
  assert.ok(Number.isNaN(jain([0, 0])));
});

test('A hold that begins while any earlier one lasts overlaps, in whatever order the holds are listed', () => {
  const hold = (fromUs, toUs) => ({ fromUs, toUs });
  assert.equal(overlaps([hold(0, 10), hold(10, 20), hold(20, 30)]), 0);
  assert.equal(overlaps([hold(15, 25), hold(0, 10), hold(9, 20)]), 2);
  assert.equal(overlaps([hold(0, 100), hold(10, 20), hold(50, 60)]), 2);
});
