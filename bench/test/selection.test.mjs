import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseContenders, chooseScenarios } from '../lib/selection.mjs';

const scenarios = [
  { name: 'wide', contenders: ['bare pair', 'reenlock'], reference: { name: 'bare pair' } },
  { name: 'keys', contenders: ['1,000 keys'], reference: { name: '1,000 keys' } },
];
const servers = new Set(['redis']);

test('Rows are measured beside the one that they are compared with, and scenarios without them are left out', () => {
  const options = { contenders: 'reenlock; redlock' };
  const chosen = chooseScenarios(scenarios, options);
  assert.deepEqual(
    chosen.map((scenario) => [scenario.name, chooseContenders(scenario, options, servers)]),
    [['wide', ['bare pair', 'reenlock']]],
  );
});

test('Rows that no scenario has are refused', () => {
  assert.throws(() => chooseScenarios(scenarios, { contenders: 'redlok' }), /Expected --contenders to name rows/);
});
