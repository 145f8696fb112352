import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { optimizations, sourceWithout } from '../lib/optimizations.mjs';
import { scenarios } from '../scenarios/index.mjs';

const build = process.env.BENCH_BUILD ?? join(import.meta.dirname, '../../dist');

for (const optimization of optimizations) {
  test(`A build can do without this optimization, and a scenario shows it: ${optimization.where}`, () => {
    const { file, scenario, row, column } = optimization;
    const source = readFileSync(join(build, file), 'utf8');
    assert.notEqual(sourceWithout(optimization, source), source);
    const { contenders, columns } = scenarios.find(({ name }) => name === scenario);
    assert.ok(contenders.includes(row));
    assert.ok(column in columns);
  });
}
