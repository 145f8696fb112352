import { median, percentile } from './stats.mjs';

/** Questions to the figures of all rounds (name → one object of figures a round). */
export function compare(figures) {
  const column = (name, key) => figures.get(name).map((round) => round[key]);
  return {
    names: [...figures.keys()],
    median: (name, key) => median(column(name, key)),
    /** The figure of a round as quiet as one in ten: the least, where less is better, without its luckiest. */
    quiet: (name, key) => percentile(column(name, key), 0.1),
    max: (name, key) => Math.max(...column(name, key)),
    /** The median of the rounds' own ratios: what slows a whole round down falls out of it. */
    ratio: (name, reference, key) => {
      const references = column(reference, key);
      return median(column(name, key).map((value, round) => value / references[round]));
    },
    /** The one of these with the greatest median. */
    best: (names, key) => names.toSorted((a, b) => median(column(b, key)) - median(column(a, key)))[0],
  };
}

/** A target that is met by a value no greater than the limit. */
export function atMost(what, value, limit) {
  return { what, value, limit: `≤ ${limit.toLocaleString('en')}`, met: value <= limit };
}

/** A target that is met by a value no less than the limit. */
export function atLeast(what, value, limit) {
  return { what, value, limit: `≥ ${limit.toLocaleString('en')}`, met: value >= limit };
}
