import { existsSync, readFileSync } from 'node:fs';

/** The file that holds the figures of the last full measurement of each scenario. */
export const resultsFile = new URL('../results.json', import.meta.url);

/**
 * What is kept of a scenario's rounds: for each row the medians and quartiles of its figures, its quiet rounds and its
 * ratios; and the goals and headlines, unless some of the rows that they are about were not measured.
 */
export function summarize(scenario, comparison, { isComplete }) {
  const { columns, quietColumns = {}, reference } = scenario;
  const rows = comparison.names.map((name) => ({
    name,
    figures: mapKeys(columns, (key) => comparison.spread(name, key)),
    quiet: mapKeys(quietColumns, (key) => comparison.quiet(name, key)),
    ratios: fromKeys(reference?.columns ?? [], (key) => comparison.ratio(name, reference.name, key)),
  }));
  const date = new Date().toISOString().slice(0, 10);
  const goals = isComplete ? scenario.goals(comparison) : [];
  const headlines = isComplete ? (scenario.headlines?.(comparison) ?? []) : [];
  return { date, rounds: comparison.rounds, seconds: comparison.seconds, rows, goals, headlines };
}

/** What was measured last; undefined if nothing was. */
export function readResults() {
  return existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : undefined;
}

/**
 * Adds results to those in the file. If those were measured on another machine or with other versions, results of all
 * scenarios take the place of everything in the file; others are refused.
 */
export function mergeResults(machine, results) {
  const earlier = readResults() ?? { machine, scenarios: {} };
  const isWhole = Object.keys(earlier.scenarios).every((name) => name in results);
  if (earlier.machine !== machine) {
    if (isWhole) return { machine, scenarios: results };
    throw new Error(`The other results were measured on "${earlier.machine}", this is "${machine}": measure all again`);
  }
  return { ...earlier, scenarios: { ...earlier.scenarios, ...results } };
}

function mapKeys(columns, figureOf) {
  return fromKeys(Object.keys(columns), figureOf);
}

function fromKeys(keys, figureOf) {
  return Object.fromEntries(keys.map((key) => [key, figureOf(key)]));
}
