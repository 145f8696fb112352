/** The names of the rows of a curve: `1,000 keys`. */
export function rowsOf(sizes, one, many) {
  return sizes.map((size) => `${size.toLocaleString('en')} ${size === 1 ? one : many}`);
}

/** The number in the name of a row of a curve. */
export function sizeOf(row) {
  return Number(row.split(' ')[0].replaceAll(',', ''));
}
