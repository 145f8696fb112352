import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseScenarios } from '../lib/selection.mjs';

const scenarios = [
  { name: 'wide', contenders: ['bare pair', 'reenlock'], reference: { name: 'bare pair' } },
  { name: 'keys', contenders: ['1,000 keys'], reference: { name: '1,000 keys' } },
];

test('Scenarios that have none of the rows are left out', () => {
  const chosen = chooseScenarios(scenarios, { contenders: 'reenlock; redlock' });
  assert.deepEqual(
    chosen.map(({ name }) => name),
    ['wide'],
  );
});

test('Rows that no scenario has are refused', () => {
  assert.throws(() => chooseScenarios(scenarios, { contenders: 'redlok' }), /Expected --contenders to name rows/);
});
