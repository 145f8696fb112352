/** A Markdown table, its columns padded so that it also reads well in a terminal. */
export function table(head, rows) {
  const widths = head.map((title, i) => Math.max(...[title, ...rows.map((row) => row[i])].map((cell) => cell.length)));
  const line = (cells) => `| ${cells.map((cell, i) => pad(cell, widths[i], i)).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** A figure in as many digits as it is worth: three, or all before the point. */
export function figure(value) {
  if (value === undefined || Number.isNaN(value)) return 'n/a';
  if (value === 0 || Number.isInteger(value)) return value.toLocaleString('en');
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString('en', {
    minimumFractionDigits: Math.min(digits, 4),
    maximumFractionDigits: Math.min(digits, 4),
  });
}

function pad(cell, width, column) {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}
