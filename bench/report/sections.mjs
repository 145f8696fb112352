import { figure, figureWithSpread, table } from './tables.mjs';

/** One scenario's table: a row a contender, the medians of its rounds, and its ratios to the reference. */
export function scenarioSection(scenario, { rounds, seconds, rows }) {
  const { columns, quietColumns = {}, reference, isCount } = scenario;
  const ratioColumns = reference?.columns ?? [];
  const head = [
    '',
    ...Object.values(columns),
    ...Object.values(quietColumns),
    ...ratioColumns.map((key) => `${columns[key]}, × ${reference.name}`),
  ];
  const cells = rows.map(({ name, figures, quiet, ratios }) => [
    name,
    ...Object.keys(columns).map((key) => figure(figures[key].value)),
    ...Object.keys(quietColumns).map((key) => figure(quiet[key])),
    ...ratioColumns.map((key) => figureWithSpread(ratios[key])),
  ]);
  const duration = isCount ? '' : ` Rounds: ${rounds}, ${Math.round(seconds)} s of each row in all.`;
  return `### ${scenario.title}: \`${scenario.name}\`\n\n${scenario.what}${duration}\n\n${table(head, cells)}`;
}

/** The scenarios whose first headline is in the README of the package; it leads to the others. */
const told = ['one-at-a-time', 're-entry', 'hot-key-processes', 'hand-off', 'keys', 'express-redis'];

/** A line for each of them that has results. */
export function headlineSection(results) {
  const rows = told.flatMap((name) =>
    (results[name]?.headlines.slice(0, 1) ?? []).map(({ what, measured, unit, than }) => [
      what,
      `${figure(measured.value)} ${unit}`,
      than,
    ]),
  );
  return table(['what', 'reenlock', 'compared with'], rows);
}

/** All goals of the scenarios that have results, with what was measured. */
export function goalSection(scenarios, results) {
  const rows = scenarios.flatMap(({ name }) =>
    (results[name]?.goals ?? []).map(({ what, limit, measured, isMet }) => [
      name,
      what,
      limit,
      figureWithSpread(measured),
      isMet ? 'met' : 'MISSED',
    ]),
  );
  return table(['scenario', 'figure', 'goal', 'measured', 'result'], rows);
}

/** What each optimization buys: a figure with it, as a ratio to the same figure without it. */
export function optimizationSection(rows) {
  const cells = rows.map(({ where, buys, scenario, figure: what, ratio }) => [
    where,
    buys,
    `\`${scenario}\``,
    what,
    figureWithSpread(ratio),
  ]);
  return table(['where', 'what it buys', 'scenario', 'figure', '× without it'], cells);
}
