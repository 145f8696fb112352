/** A Markdown table, numbers to the right, padded so that it also reads well in a terminal. */
export function table(head, rows) {
  const columns = head.map((title, i) => {
    const cells = rows.map((row) => row[i]);
    const width = Math.max(3, title.length, ...cells.map((cell) => cell.length));
    const isNumeric = cells.every((cell) => /^([\d.,]+( \([\d.,]+–[\d.,]+\))?|n\/a)$/.test(cell));
    return { width, pad: (cell) => (isNumeric ? cell.padStart(width) : cell.padEnd(width)), isNumeric };
  });
  const line = (cells) => `| ${cells.map((cell, i) => columns[i].pad(cell)).join(' | ')} |`;
  const rule = columns.map(({ width, isNumeric }) => '-'.repeat(width - 1) + (isNumeric ? ':' : '-'));
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n');
}

/** A figure in as many digits as it is worth: three, or all before the point. */
export function figure(value) {
  if (value === undefined || value === null || !Number.isFinite(value)) return 'n/a';
  if (Number.isInteger(value)) return value.toLocaleString('en');
  const wanted = 2 - Math.floor(Math.log10(Math.abs(value)));
  const digits = Math.min(4, Math.max(0, wanted));
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A figure with its quartiles, if it has any: `1.22 (1.19–1.27)`. */
export function figureWithSpread({ value, low, high }) {
  const isCertain = !Number.isFinite(low) || (low === value && high === value);
  return isCertain ? figure(value) : `${figure(value)} (${figure(low)}–${figure(high)})`;
}
