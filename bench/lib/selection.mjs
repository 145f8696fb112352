import { missingFor, serverOf } from '../contenders/index.mjs';

/**
 * The scenarios that `--only` names, or all, without those that have none of the rows of `--contenders`; with what `--quick` and
 * `--rounds` replace.
 */
export function chooseScenarios(scenarios, { only, quick, rounds, write, contenders, before }) {
  if (write && (quick || contenders !== undefined || before !== undefined)) {
    throw new Error('--write is for full measurements: leave out --quick, --contenders and --before');
  }
  if (rounds !== undefined && !/^[1-9]\d*$/.test(rounds)) {
    throw new Error(`Expected --rounds to be a whole number of 1 or more, got ${rounds}`);
  }
  const names = scenarios.map(({ name }) => name);
  for (const name of only ?? []) {
    if (!names.includes(name)) throw new Error(`Expected --only to be one of ${names.join(', ')}, got ${name}`);
  }
  const chosen = scenarios
    .filter(({ name }) => only?.includes(name) ?? true)
    .filter((scenario) => scenario.contenders.some((name) => isNamed(contenders, name)));
  if (chosen.length === 0) throw new Error(`Expected --contenders to name rows of the scenarios, got ${contenders}`);
  return chosen.map((scenario) => {
    const asked = quick ? quickened(scenario) : scenario;
    return rounds === undefined ? asked : { ...asked, rounds: Number(rounds) };
  });
}

/**
 * The rows of a scenario that can be measured here: those of `--contenders`, and the one that they are compared with. With
 * `--before` each row of this package has one of the other build beside it. A row is left out, with a line that says why,
 * if its server or one of its modules is not installed.
 */
export function chooseContenders(scenario, { contenders, before }, servers) {
  const isWanted = (name) => name === scenario.reference?.name || isNamed(contenders, name);
  const chosen = scenario.contenders.filter((name) => isWanted(name) && isInstalled(name, servers));
  if (before === undefined || scenario.isCurve) return chosen;
  return chosen.flatMap((name) => (hasBefore(name) ? [name, `${name} before`] : [name]));
}

/** Whether `--contenders` names a row; without it, all are named. */
function isNamed(contenders, row) {
  return contenders === undefined || contenders.split(';').some((name) => name.trim() === row);
}

function isInstalled(name, servers) {
  const missing = missingFor(name);
  if (!servers.has(serverOf(name))) missing.push(serverOf(name));
  if (missing.length > 0) console.error(`Without "${name}": ${missing.join(', ')} is not installed.`);
  return missing.length === 0;
}

function hasBefore(name) {
  return name.startsWith('reenlock');
}

function quickened({ quick, ...scenario }) {
  return { ...scenario, ...quick, size: { ...scenario.size, ...quick.size } };
}
