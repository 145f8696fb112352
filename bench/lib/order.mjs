/**
 * The order of the contenders in a round. Over `2 × n` rounds each contender stands in each place twice, and follows each
 * other one equally often: what one leaves behind (garbage, a busy core) falls on all alike. This is Williams' design:
 * 0, 1, n−1, 2, n−2, … for the first round, one further for each later one, and backwards in every other group of n rounds.
 */
export function orderOf(names, round) {
  const count = names.length;
  const zigzag = names.map((_, place) => (place % 2 === 1 ? (place + 1) / 2 : (count - place / 2) % count));
  const order = zigzag.map((start) => names[(start + round) % count]);
  return Math.floor(round / count) % 2 === 1 ? order.reverse() : order;
}
