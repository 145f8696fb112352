import { readFileSync, writeFileSync } from 'node:fs';
import { figure, table } from './tables.mjs';

const readme = new URL('../README.md', import.meta.url);
const begin = '<!-- results: written by run.mjs -->';
const end = '<!-- /results -->';

/** One scenario's table: a row a contender, medians of its rounds, and its ratio to the reference. */
export function scenarioSection({ scenario, comparison, rounds }) {
  const { columns, quietColumns = {}, reference } = scenario;
  const ratioTitle = `${columns[reference.column]}, × ${reference.name}`;
  const head = ['', ...Object.values(columns), ...Object.values(quietColumns), ratioTitle];
  const rows = comparison.names.map((name) => {
    const cells = [
      ...Object.keys(columns).map((key) => comparison.median(name, key)),
      ...Object.keys(quietColumns).map((key) => comparison.quiet(name, key)),
      comparison.ratio(name, reference.name, reference.column),
    ];
    return [name, ...cells.map(figure)];
  });
  return `### ${scenario.title}: \`${scenario.name}\`\n\n${scenario.what} Rounds: ${rounds}.\n\n${table(head, rows)}`;
}

/** All targets of the scenarios that were run, with what was measured. */
export function targetSection(results) {
  const rows = results.flatMap(({ scenario, targets }) =>
    targets.map(({ what, limit, value, met }) => [scenario.name, what, limit, figure(value), met ? 'met' : 'MISSED']),
  );
  return table(['scenario', 'figure', 'target', 'measured', 'result'], rows);
}

/** Puts the results of a whole run between the markers of bench/README.md. */
export function writeResults(results, machine) {
  const sections = [
    `Measured on ${machine.date}: ${machine.processor}; Node ${machine.node}, Redis ${machine.redis}; ${machine.packages}.`,
    '### Targets',
    targetSection(results),
    ...results.map(scenarioSection),
  ];
  const text = readFileSync(readme, 'utf8');
  const from = text.indexOf(begin) + begin.length;
  writeFileSync(readme, `${text.slice(0, from)}\n\n${sections.join('\n\n')}\n\n${text.slice(text.indexOf(end))}`);
}
