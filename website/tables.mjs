/**
 * Phones show a table as a list, a block for each row. This writes its column's head next to each cell, for the style sheet to
 * show. With two columns the first names the second well enough.
 */
export function labelCells({ tokens }) {
  let heads = [];
  let column = 0;
  for (const [at, { type }] of tokens.entries()) {
    if (type === 'table_open') heads = [];
    else if (type === 'tr_open') column = 0;
    else if (type === 'th_open') heads.push(textOf(tokens[at + 1]));
    else if (type === 'td_open') {
      const head = heads[column];
      if (column > 0 && heads.length > 2 && head) tokens[at].attrSet('data-label', head);
      column += 1;
    }
  }
}

function textOf({ children }) {
  return children.map(({ content }) => content).join('');
}
