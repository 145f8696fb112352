import { median, pairedRatio, percentile, spread } from './stats.mjs';

/** Questions about the figures of all rounds (contender → one object of figures a round). */
export function compare(figures) {
  const column = (name, key) => figures.get(name).map((round) => round[key]);
  return {
    names: [...figures.keys()],
    has: (name) => figures.has(name),
    median: (name, key) => median(column(name, key)),
    spread: (name, key) => spread(column(name, key)),
    /** The tenth percentile: the figure of a quiet round, without the luckiest ones. */
    quiet: (name, key) => percentile(column(name, key), 0.1),
    max: (name, key) => Math.max(...column(name, key)),
    ratio: (name, reference, key) => pairedRatio(column(name, key), column(reference, key)),
    /** The one of these with the greatest median. */
    best: (names, key) => names.toSorted((a, b) => median(column(b, key)) - median(column(a, key)))[0],
    /** How long the contender with the least time was measured, over all rounds, in seconds. */
    rounds: figures.values().next().value.length,
    seconds: Math.min(...[...figures.values()].map((rounds) => sum(rounds.map(({ wallMs }) => wallMs)) / 1000)),
  };
}

/** A goal that is met by a value no greater than the limit. The value is a number or a ratio with its spread. */
export function atMost(what, value, limit) {
  return goal(what, value, `≤ ${limit.toLocaleString('en')}`, (measured) => measured <= limit);
}

/** A goal that is met by a value no less than the limit. */
export function atLeast(what, value, limit) {
  return goal(what, value, `≥ ${limit.toLocaleString('en')}`, (measured) => measured >= limit);
}

/** A line for the table of the package's README: `what`, the figure with its unit, and what it is compared with. */
export function headline(what, value, unit, than) {
  return { what, measured: measuredOf(value), unit, than };
}

function measuredOf(value) {
  return typeof value === 'number' ? { value } : value;
}

function goal(what, value, limit, isMetBy) {
  const measured = measuredOf(value);
  return { what, measured, limit, isMet: isMetBy(measured.value) };
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
