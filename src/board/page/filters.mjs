// Filters the locks: by words, by category, or only those with waiters.

import { find } from './dom.mjs';
import { counted } from './format.mjs';

export class Filters {
  #text = /** @type {HTMLInputElement} */ (find('text'));
  #category = /** @type {HTMLSelectElement} */ (find('category'));
  #contended = /** @type {HTMLInputElement} */ (find('contended'));
  #count = find('count');
  #empty = find('empty');
  /** @type {Set<string>} */
  #categories = new Set();

  /** @param {(filter: { text: string, category: string | undefined, isContended: boolean }) => void} onChange */
  constructor(onChange) {
    const form = this.#text.form;
    form?.addEventListener('submit', (event) => event.preventDefault());
    form?.addEventListener('input', () => {
      const { value } = this.#category;
      const category = value === '' ? undefined : value.slice(1);
      onChange({ text: this.#text.value, category, isContended: this.#contended.checked });
    });
    document.addEventListener('keydown', (event) => {
      // As on many pages with a list; not while the user is typing.
      if (event.key !== '/' || event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.#text.focus();
    });
  }

  /**
   * Offers a category once; '' is that of the keys without one.
   * @param {string} name
   */
  offer(name) {
    if (this.#categories.has(name)) return;
    this.#categories.add(name);
    // The entry for all categories has the value '', so the one without a name needs another.
    const option = new Option(name === '' ? 'Without' : name, `=${name}`);
    const after = [...this.#category.options].slice(1).find(({ value }) => value > option.value);
    this.#category.add(option, after ?? null);
  }

  /**
   * Shows how many locks there are, and why there are none.
   * @param {number} shown
   * @param {number} all
   * @param {boolean} isKnown Whether the store has replied with all of them.
   */
  showCounts(shown, all, isKnown) {
    const isAll = shown === all;
    const found = isAll ? counted(all, 'lock') : `${shown.toLocaleString('en')} of ${counted(all, 'lock')}`;
    this.#count.textContent = isKnown || all > 0 ? found : '';
    this.#empty.hidden = shown > 0;
    const none = isKnown ? 'Nobody holds a lock now, and nobody waits for one.' : 'No lock is known yet.';
    this.#empty.textContent = all > 0 ? 'No lock matches.' : none;
  }
}
