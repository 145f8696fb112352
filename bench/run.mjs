import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { compare } from './lib/compare.mjs';
import { openingsOfBuilds, runRounds } from './lib/rounds.mjs';
import { chooseContenders, chooseScenarios } from './lib/selection.mjs';
import { describeMachine } from './report/machine.mjs';
import { mergeResults, summarize } from './report/results.mjs';
import { goalSection, scenarioSection } from './report/sections.mjs';
import { scenarios } from './scenarios/index.mjs';
import { startServers } from './servers/index.mjs';
import { write } from './write.mjs';

const leastSeconds = 5;

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    contenders: { type: 'string' },
    before: { type: 'string' },
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));

const chosen = chooseScenarios(scenarios, options);
if (options.before !== undefined) process.env.BENCH_BEFORE = resolve(options.before);
if (!existsSync(new URL('node_modules/', import.meta.url))) {
  throw new Error('The peers are not installed: run "npm --prefix bench install"');
}
await import('reenlock').catch((cause) => {
  throw new Error('reenlock is not built: run "npm run build" in the package', { cause });
});

const servers = await startServers(['redis', 'cluster', 'postgres', 'mariadb']);
const results = {};
try {
  for (const scenario of chosen) results[scenario.name] = await run(scenario);
} finally {
  await servers.stop();
}
if (Object.values(results).some(({ goals }) => goals.length > 0)) console.log(goalSection(scenarios, results));
if (options.write) await write(mergeResults(describeMachine(servers.descriptions), results));
else console.log('\nPrinted only; --write puts the results of full measurements into the README.');

async function run(scenario) {
  const names = chooseContenders(scenario, options, servers);
  const { rounds, size } = scenario;
  const openings = options.before === undefined ? 1 : openingsOfBuilds;
  process.stderr.write(`${scenario.name} `);
  const figures = await runRounds(scenario, { names, rounds, openings, size, servers });
  const comparison = compare(figures);
  console.error(scenario.isCount ? '' : `${comparison.seconds.toFixed(1)} s of each`);
  const isComplete = options.contenders === undefined;
  const result = summarize(scenario, comparison, { isComplete });
  console.log(`\n${scenarioSection(scenario, result)}\n`);
  if (options.only !== undefined) for (const note of notesOf(figures)) console.log(note);
  if (options.write && comparison.seconds < leastSeconds) {
    throw new Error(`Expected ${leastSeconds} s of each row of ${scenario.name}: raise its rounds`);
  }
  return result;
}

/** What the last round of each contender has to say beside its figures. */
function notesOf(figures) {
  return [...figures].flatMap(([name, rounds]) => (rounds.at(-1).notes ?? []).map((note) => `${name}: ${note}`));
}
