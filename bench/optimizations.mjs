import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compare } from './lib/compare.mjs';
import { buildWithout, optimizations } from './lib/optimizations.mjs';
import { openingsOfBuilds, runRounds } from './lib/rounds.mjs';
import { readResults } from './report/results.mjs';
import { optimizationSection } from './report/sections.mjs';
import { scenarios } from './scenarios/index.mjs';
import { startServers } from './servers/index.mjs';
import { write } from './write.mjs';

const { values: options } = parseArgs({
  options: { only: { type: 'string', multiple: true }, write: { type: 'boolean', default: false } },
});

const servers = await startServers(['redis', 'cluster', 'postgres']);
const folder = mkdtempSync(join(tmpdir(), 'reenlock-bench-'));
const rows = [];
try {
  for (const each of optimizations) if (isChosen(each)) rows.push(await measure(each));
} finally {
  await servers.stop();
  rmSync(folder, { recursive: true, force: true });
}
console.log(optimizationSection(rows));
if (options.write) await write({ ...readResults(), optimizations: withEarlier(rows) });

function isChosen({ where }) {
  return options.only?.some((part) => where.includes(part)) ?? true;
}

/** Those that were not measured this time keep their figures. */
function withEarlier(rows) {
  const all = [...rows, ...(readResults().optimizations ?? [])];
  return optimizations.flatMap(({ where }) => all.find((row) => row.where === where) ?? []);
}

/** Measures this build beside one that does without the optimization, paired, and compares one figure. */
async function measure(optimization) {
  const { where, buys, scenario: name, row, column } = optimization;
  const scenario = scenarios.find((each) => each.name === name);
  buildWithout(optimization, folder);
  process.env.BENCH_BEFORE = folder;
  process.stderr.write(`${where} `);
  const { rounds, size } = scenario;
  const names = [row, `${row} before`];
  const comparison = compare(await runRounds(scenario, { names, rounds, openings: openingsOfBuilds, size, servers }));
  const ratio = comparison.ratio(names[0], names[1], column);
  console.error(ratio.value.toFixed(3));
  return { where, buys, scenario: name, figure: scenario.columns[column], ratio };
}
