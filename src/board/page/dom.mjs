// Finds, creates and writes nodes of the page.

/**
 * The element with an id: the page has it.
 * @param {string} id
 */
export function find(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * An element whose content is text, never markup.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {string} className
 */
export function make(name, className, text = '') {
  const node = document.createElement(name);
  if (className !== '') node.className = className;
  node.textContent = text;
  return node;
}

/**
 * A running time, which `Panel` updates.
 * @param {string} holdId The hold or waiter that it belongs to.
 * @param {'time' | 'time left'} className
 */
export function makeTime(holdId, className = 'time') {
  const node = make('span', className);
  node.dataset.of = holdId;
  return node;
}

/**
 * Writes the text of a node. Leaves an equal text alone: what marks a text, or reads it out, begins again at each change.
 * @param {Node} node
 * @param {string} text
 */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
