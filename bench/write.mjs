import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fill } from './report/markers.mjs';
import { resultsFile } from './report/results.mjs';
import { goalSection, headlineSection, optimizationSection, scenarioSection } from './report/sections.mjs';
import { scenarios } from './scenarios/index.mjs';

const bench = import.meta.dirname;
const page = join(bench, 'README.md');
const curves = join(bench, 'curves');

/**
 * Keeps the results, draws the curves, and writes into the README of the benchmarks what it has markers for:
 * `<!-- bench:results -->`, all tables and curves; `<!-- bench:headlines -->`, six lines; and `<!-- bench:optimizations -->`,
 * what each of them buys. Each ends with a marker like `<!-- /bench:results -->`.
 */
export async function write(results) {
  writeFileSync(resultsFile, `${JSON.stringify(results, shorter, 2)}\n`);
  const measured = scenarios.filter(({ name }) => results.scenarios[name] !== undefined);
  const drawn = measured.filter(({ chart }) => chart !== undefined);
  await draw(drawn, results);
  const contents = {
    results: () => resultsFor(measured, results),
    headlines: () => headlineSection(results.scenarios),
    optimizations: () => optimizationSection(results.optimizations ?? []),
  };
  writeFileSync(
    page,
    fill(readFileSync(page, 'utf8'), (name) => contents[name]()),
  );
}

function resultsFor(measured, results) {
  const sections = measured.map((scenario) => {
    const section = scenarioSection(scenario, results.scenarios[scenario.name]);
    return scenario.chart === undefined ? section : `${section}\n\n${picture(scenario)}`;
  });
  const when = `Measured on ${dates(results)}: ${results.machine}.`;
  return [when, '### Goals', goalSection(scenarios, results.scenarios), ...sections].join('\n\n');
}

async function draw(drawn, results) {
  const { drawCurve } = await import('./report/charts.mjs');
  mkdirSync(curves, { recursive: true });
  for (const scenario of drawn) {
    writeFileSync(join(curves, `${scenario.name}.svg`), drawCurve(scenario, results.scenarios[scenario.name]));
  }
}

function picture({ title, name }) {
  return `![${title}](curves/${name}.svg)`;
}

function dates({ scenarios: all }) {
  const days = [...new Set(Object.values(all).map(({ date }) => date))].sort();
  return days.length === 1 ? days[0] : `${days[0]} to ${days.at(-1)}`;
}

/** More digits than these say nothing. */
function shorter(_key, value) {
  return typeof value === 'number' ? Number(value.toPrecision(5)) : value;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await write(JSON.parse(readFileSync(resultsFile, 'utf8')));
}
