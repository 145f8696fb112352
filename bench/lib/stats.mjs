/** The value below which the given share (0 to 1) of the values lies, by nearest rank. */
export function percentile(values, share) {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** The middle value; of an even number of values, the mean of the two in the middle. */
export function median(values) {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) return Number.NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median with the quartiles beside it: half of the values lie between `low` and `high`. */
export function spread(values) {
  return { value: median(values), low: percentile(values, 0.25), high: percentile(values, 0.75) };
}

/**
 * How one contender compares with another that was measured in the same rounds: the median of the ratios of the single
 * rounds, with their quartiles. What slows a whole round down falls out of it.
 */
export function pairedRatio(values, references) {
  return spread(values.map((value, round) => value / references[round]));
}

/** Jain's fairness index: 1 if all counts are equal, 1/n if one has everything. */
export function jain(counts) {
  const sum = counts.reduce((total, count) => total + count, 0);
  const squares = counts.reduce((total, count) => total + count * count, 0);
  return squares === 0 ? Number.NaN : (sum * sum) / (counts.length * squares);
}

/** How many of the intervals begin before all earlier ones have ended. */
export function overlaps(intervals) {
  const sorted = intervals.toSorted((a, b) => a.fromUs - b.fromUs);
  let endUs = Number.NEGATIVE_INFINITY;
  let found = 0;
  for (const { fromUs, toUs } of sorted) {
    if (fromUs < endUs) found += 1;
    endUs = Math.max(endUs, toUs);
  }
  return found;
}
