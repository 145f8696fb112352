// Making nodes of the page.

/**
 * An element whose content is text, whatever it says.
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
 * A time that goes on: `Panel` writes it.
 * @param {string} holdId Whose time it is.
 * @param {'time' | 'time left'} className
 */
export function makeTime(holdId, className = 'time') {
  const node = make('span', className);
  node.dataset.of = holdId;
  return node;
}
