import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ours } from './contenders/index.mjs';
import { compare } from './lib/compare.mjs';
import { describeMachine } from './lib/machine.mjs';
import { startRedis } from './lib/redis-server.mjs';
import { scenarioSection, targetSection, writeResults } from './lib/report.mjs';
import { runRounds } from './lib/rounds.mjs';
import { scenarios } from './scenarios/index.mjs';

const { values: options } = parseArgs({
  options: {
    scenario: { type: 'string' },
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    'without-ours': { type: 'boolean', default: false },
  },
});
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));

const named = scenarios.filter(({ name }) => options.scenario === undefined || options.scenario === name);
if (named.length === 0) throw new Error(`No such scenario; one of ${scenarios.map(({ name }) => name).join(', ')}`);
const chosen = named.filter((scenario) => contendersOf(scenario).length > 0);
if (chosen.length === 0) throw new Error(`${options.scenario} is of reenlock alone: nothing is left --without-ours`);
if (options.rounds !== undefined && !/^[1-9]\d*$/.test(options.rounds)) {
  throw new Error(`Expected --rounds to be a whole number of 1 or more, got ${options.rounds}`);
}
await checkInstalled();

const redis = await startRedis();
const results = [];
try {
  for (const scenario of chosen) {
    const result = await run(scenario);
    results.push(result);
    console.log(`\n${scenarioSection(result)}\n`);
  }
} finally {
  await redis.stop();
}
if (!options['without-ours']) console.log(targetSection(results));

const whole = options.scenario === undefined && !options.quick && !options['without-ours'];
if (whole) writeResults(results, describeMachine(redis.version));
else console.log('\nOnly a whole run, without options but --rounds, is written to README.md.');

function contendersOf({ contenders, quickContenders = contenders, isCurve = false }) {
  return (options.quick ? quickContenders : contenders).filter(
    (name) => !options['without-ours'] || !(isCurve || ours.includes(name)),
  );
}

async function run(scenario) {
  const names = contendersOf(scenario);
  const rounds = Number(options.rounds ?? (options.quick ? scenario.quickRounds : scenario.rounds));
  const size = options.quick ? { ...scenario.size, ...scenario.quickSize } : scenario.size;
  process.stderr.write(`${scenario.name} `);
  const startedMs = Date.now();
  const comparison = compare(await runRounds(scenario, { names, rounds, size, redis }));
  console.error(` ${Math.round((Date.now() - startedMs) / 1000)} s`);
  return { scenario, rounds, comparison, targets: options['without-ours'] ? [] : scenario.targets(comparison) };
}

async function checkInstalled() {
  if (!existsSync(new URL('node_modules/', import.meta.url))) {
    throw new Error('The peers are not installed: run "npm --prefix bench install"');
  }
  if (options['without-ours']) {
    console.error('WITHOUT reenlock (--without-ours): the peers only, no targets.');
    return;
  }
  await import('reenlock').catch((cause) => {
    throw new Error('reenlock is not built: run "npm run build" in the package, or give --without-ours', { cause });
  });
}
