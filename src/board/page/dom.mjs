// Creates nodes of the page.

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
