import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atLeast, atMost, compare } from '../lib/compare.mjs';
import { summarize } from '../report/results.mjs';
import { goalSection, headlineSection, scenarioSection } from '../report/sections.mjs';
import { rowsOf, sizeOf } from '../report/sizes.mjs';
import { figure, figureWithSpread, table } from '../report/tables.mjs';

const rounds = new Map([
  ['bare pair', [10, 20, 30].map((p50Us) => ({ p50Us, wallMs: 2_000 }))],
  ['reenlock', [11, 24, 36].map((p50Us) => ({ p50Us, wallMs: 1_500 }))],
]);
const scenario = {
  name: 'one-at-a-time',
  title: 'One at a time',
  what: 'What is measured.',
  columns: { p50Us: 'p50 µs' },
  quietColumns: { p50Us: 'p50 µs, quiet rounds' },
  reference: { name: 'bare pair', columns: ['p50Us'] },
  goals: ({ ratio }) => [
    atMost('p50, × bare pair', ratio('reenlock', 'bare pair', 'p50Us'), 1.1),
    atLeast('something', 7, 5),
  ],
};

test('A scenario is as long as its contender that was measured for the shortest time', () => {
  assert.equal(compare(rounds).seconds, 4.5);
});

test('A section has the medians of the rounds, and the ratio with its spread', () => {
  const section = scenarioSection(scenario, summarize(scenario, compare(rounds), { isComplete: true }));
  assert.equal(
    section,
    `### One at a time: \`one-at-a-time\`

What is measured. Rounds: 3, 5 s of each row in all.

|           | p50 µs | p50 µs, quiet rounds | p50 µs, × bare pair |
| --------- | -----: | -------------------: | ------------------: |
| bare pair |     20 |                   10 |                   1 |
| reenlock  |     24 |                   11 |    1.20 (1.10–1.20) |`,
  );
});

test('A goal is met or missed by the value that is reported, and it is reported with its spread', () => {
  const results = { 'one-at-a-time': summarize(scenario, compare(rounds), { isComplete: true }) };
  assert.equal(
    goalSection([scenario], results),
    `| scenario      | figure           | goal  |         measured | result |
| ------------- | ---------------- | ----- | ---------------: | ------ |
| one-at-a-time | p50, × bare pair | ≤ 1.1 | 1.20 (1.10–1.20) | MISSED |
| one-at-a-time | something        | ≥ 5   |                7 | met    |`,
  );
});

test('The README has one line of each scenario that it tells about', () => {
  const headlines = ['first', 'second'].map((what) => ({ what, measured: { value: 1.5 }, unit: '×', than: 'a pair' }));
  assert.equal(
    headlineSection({ 'one-at-a-time': { headlines }, wide: { headlines } }),
    `| what  | reenlock | compared with |
| ----- | -------- | ------------- |
| first | 1.50 ×   | a pair        |`,
  );
});

test('Results that went through JSON give the same section', () => {
  const withoutFigure = new Map([['bare pair', [{ p50Us: Number.NaN, wallMs: 1 }]]]);
  for (const each of [rounds, withoutFigure]) {
    const summary = summarize({ ...scenario, goals: () => [] }, compare(each), { isComplete: true });
    assert.equal(scenarioSection(scenario, JSON.parse(JSON.stringify(summary))), scenarioSection(scenario, summary));
  }
});

test('Goals are left out if not all contenders were measured', () => {
  assert.deepEqual(summarize(scenario, compare(rounds), { isComplete: false }).goals, []);
});

test('A figure has three digits, or all before the point', () => {
  assert.deepEqual([1234.5, 123.45, 12.345, 1.2345, 0.012345, 7, 1e6].map(figure), [
    '1,235',
    '123',
    '12.3',
    '1.23',
    '0.0123',
    '7',
    '1,000,000',
  ]);
  assert.deepEqual([undefined, null, Number.NaN, Number.POSITIVE_INFINITY].map(figure), ['n/a', 'n/a', 'n/a', 'n/a']);
});

test('A figure without spread is printed alone', () => {
  assert.equal(figureWithSpread({ value: 1, low: 1, high: 1 }), '1');
  assert.equal(figureWithSpread({ value: 2.5 }), '2.50');
  assert.equal(figureWithSpread({ value: 2.5, low: 2, high: 3.25 }), '2.50 (2–3.25)');
});

test('A column of figures is aligned to the right, also with spreads and missing figures', () => {
  const rows = [
    ['a', '1.22 (1.10–1.30)'],
    ['b', 'n/a'],
  ];
  assert.match(table(['', 'ratio'], rows), /\| b {3}\| {14}n\/a \|/);
});

test('The size in the name of a row is read back', () => {
  const rows = rowsOf([1, 10_000], 'reader', 'readers');
  assert.deepEqual(rows, ['1 reader', '10,000 readers']);
  assert.deepEqual(rows.map(sizeOf), [1, 10_000]);
});
