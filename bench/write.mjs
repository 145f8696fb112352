import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { resultsFile } from './report/results.mjs';
import { goalSection, scenarioSection } from './report/sections.mjs';
import { scenarios } from './scenarios/index.mjs';

const readme = new URL('README.md', import.meta.url);
const curves = new URL('curves/', import.meta.url);
const begin = '<!-- results: written by write.mjs -->';
const end = '<!-- /results -->';

/** Keeps the results, and writes the tables between the markers of the README and the pictures of the curves. */
export async function write(results) {
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`);
  const { drawCurve } = await import('./report/charts.mjs');
  mkdirSync(curves, { recursive: true });
  const measured = scenarios.filter(({ name }) => results.scenarios[name] !== undefined);
  const sections = measured.map((scenario) => {
    const { name, chart, title } = scenario;
    const section = scenarioSection(scenario, results.scenarios[name]);
    if (chart === undefined) return section;
    writeFileSync(new URL(`${name}.svg`, curves), drawCurve(scenario, results.scenarios[name]));
    return `${section}\n\n![${title}](curves/${name}.svg)`;
  });
  const text = [
    `Measured on ${dates(results)}: ${results.machine}.`,
    '### Goals',
    goalSection(scenarios, results.scenarios),
  ];
  writeFileSync(readme, between(readFileSync(readme, 'utf8'), [...text, ...sections].join('\n\n')));
}

function dates({ scenarios: all }) {
  const days = [...new Set(Object.values(all).map(({ date }) => date))].sort();
  return days.length === 1 ? days[0] : `${days[0]} to ${days.at(-1)}`;
}

function between(text, content) {
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from === -1 || to < from) throw new Error(`README.md has no ${begin} … ${end}`);
  return `${text.slice(0, from + begin.length)}\n\n${content}\n\n${text.slice(to)}`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await write(JSON.parse(readFileSync(resultsFile, 'utf8')));
}
