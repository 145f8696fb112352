// The table: a sorted line for each lock that matches the filter. A change updates its own lines, the clock those that are
// visible.

import { branchPath } from './format.mjs';
import { Line } from './line.mjs';

/**
 * @typedef {import('../lock-row.ts').LockRow} LockRow
 * @typedef {'key' | 'holder' | 'instance' | 'held' | 'lease' | 'waiters' | 'wait'} Column
 * @typedef {object} Entry
 * @property {LockRow} row
 * @property {string} words The text that the filter searches.
 * @property {Line | undefined} line
 * @property {boolean} isSeen
 * @property {boolean} isGone Released while the pointer was over the table.
 */

/** Nobody would scroll through more. */
const maxLines = 1000;
/** How many lines one frame creates: all together they would block the page. */
const linesPerFrame = 100;

/**
 * The sort key of a column, the longest time as the greatest; undefined is last.
 * @type {Record<Column, (row: LockRow) => string | number | undefined>}
 */
const values = {
  key: (row) => row.key,
  holder: (row) => row.holder && branchPath(row.holder),
  instance: (row) => row.holder?.instance,
  held: (row) => row.holder && -row.holder.sinceMs,
  lease: (row) => row.holder?.endMs,
  waiters: (row) => row.waiters,
  wait: (row) => (row.waitingSinceMs === undefined ? undefined : -row.waitingSinceMs),
};
const texts = new Set(['key', 'holder', 'instance']);

export class LockTable {
  /** Called with the numbers of shown and of all locks, whenever they may have changed. @type {(shown: number, all: number) => void} */
  onRender = () => {};
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  #body = document.createElement('tbody');
  /** @type {HTMLTableCellElement[]} */
  #heads;
  #now;
  /** @type {string | undefined} */
  #selected;
  /** @type {{ column: Column, isDescending: boolean }} */
  #order = { column: 'wait', isDescending: true };
  /** @type {(entry: Entry) => boolean} */
  #filter = () => true;
  #isDue = false;
  /** Whether the pointer is over the lines: then none of them moves away from under it. */
  #isStill = false;
  #watcher = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) this.#see(target, isIntersecting);
  });

  /**
   * @param {HTMLTableElement} table
   * @param {() => number} now The store's clock.
   * @param {(id: string) => void} onSelect
   */
  constructor(table, now, onSelect) {
    this.#now = now;
    this.#heads = [...table.querySelectorAll('th')];
    table.tBodies[0]?.replaceWith(this.#body);
    this.#body.addEventListener('click', ({ target }) => {
      const id = target instanceof Element && target.closest('tr')?.dataset.id;
      // Not at the end of a drag that marks a trace id to copy it.
      if (id && getSelection()?.isCollapsed !== false) onSelect(id);
    });
    this.#body.addEventListener('pointerenter', () => this.#keepStill(true));
    this.#body.addEventListener('pointerleave', () => this.#keepStill(false));
    this.#body.addEventListener('keydown', moveFocus);
    table.tHead?.addEventListener('click', ({ target }) => {
      const { sort } = target instanceof HTMLElement ? target.dataset : {};
      if (sort !== undefined) this.#sort(/** @type {Column} */ (sort));
    });
    this.#markOrder();
  }

  get rows() {
    return [...this.#entries.values()].filter(({ isGone }) => !isGone).map(({ row }) => row);
  }

  /** @param {LockRow} row */
  set(row) {
    const named = [...(row.holder === undefined ? [] : [row.holder]), ...row.next];
    const who = named.flatMap((each) => [branchPath(each), each.instance]);
    const words = [row.key, row.category, ...who].join('\n').toLowerCase();
    const known = this.#entries.get(row.id);
    const entry = { row, words, line: known?.line, isSeen: known?.isSeen ?? false, isGone: false };
    entry.line?.fade(false);
    this.#entries.set(row.id, entry);
    this.#showTimes(entry);
    this.renderSoon();
  }

  /** @param {string} id */
  delete(id) {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.isGone = true;
    entry.line?.fade(true);
    if (!this.#isStill) this.#removeGone();
    this.renderSoon();
  }

  /**
   * Shows only what matches.
   * @param {{ text: string, category: string | undefined, isContended: boolean }} filter
   */
  show({ text, category, isContended }) {
    const wanted = text.trim().toLowerCase();
    this.#filter = ({ row, words }) =>
      words.includes(wanted) &&
      (category === undefined || (row.category ?? '') === category) &&
      (!isContended || row.waiters > 0);
    this.renderSoon();
  }

  /** @param {string | undefined} id */
  select(id) {
    this.#entries.get(this.#selected ?? '')?.line?.select(false);
    this.#entries.get(id ?? '')?.line?.select(true);
    this.#selected = id;
  }

  /** @param {string} id */
  focus(id) {
    this.#entries.get(id)?.line?.focus();
  }

  /** Updates the times in the visible lines. */
  tick() {
    const now = this.#now();
    for (const { isSeen, line, row } of this.#entries.values()) if (isSeen) line?.tick(row, now);
  }

  /** Writes the lines in the next frame. */
  renderSoon() {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => this.#render());
  }

  /** Puts the lines in order, moving as few as possible, and makes some of those that are missing. */
  #render() {
    this.#isDue = false;
    const places = new Map(this.#isStill ? [...this.#body.rows].map(({ dataset }, place) => [dataset.id, place]) : []);
    const placeOf = (/** @type {Entry} */ { row }) => places.get(row.id) ?? places.size;
    const matching = [...this.#entries.values()]
      .filter(this.#filter)
      .sort((a, b) => placeOf(a) - placeOf(b) || this.#compare(a.row, b.row));
    const shown = new Set(matching.slice(0, maxLines));
    for (const entry of this.#entries.values()) if (!shown.has(entry)) this.#take(entry);
    let made = 0;
    let next = this.#body.firstElementChild;
    for (const entry of shown) {
      if (entry.line === undefined) {
        if (made === linesPerFrame) continue;
        made += 1;
        this.#make(entry);
      }
      const node = entry.line?.node ?? null;
      if (node === next) next = next?.nextElementSibling ?? null;
      else if (node !== null) this.#body.insertBefore(node, next);
    }
    if (made === linesPerFrame) this.renderSoon();
    this.onRender([...shown].filter(({ isGone }) => !isGone).length, this.rows.length);
  }

  /** @param {LockRow} a @param {LockRow} b */
  #compare(a, b) {
    const { column, isDescending } = this.#order;
    const byColumn = compare(values[column](a), values[column](b), isDescending);
    // The longest hold first, then by name: a line stays in place while its lock does not change.
    return byColumn || compare(values.held(a), values.held(b), true) || compare(a.id, b.id, false);
  }

  /** @param {boolean} isStill */
  #keepStill(isStill) {
    this.#isStill = isStill;
    if (!isStill) this.#removeGone();
    this.renderSoon();
  }

  #removeGone() {
    for (const [id, entry] of this.#entries) {
      if (!entry.isGone) continue;
      this.#take(entry);
      this.#entries.delete(id);
    }
  }

  /** @param {Column} column */
  #sort(column) {
    const isSame = this.#order.column === column;
    this.#order = { column, isDescending: isSame ? !this.#order.isDescending : !texts.has(column) };
    this.#markOrder();
    this.#keepStill(false);
  }

  #markOrder() {
    for (const head of this.#heads) {
      const isSorted = head.querySelector('button')?.dataset.sort === this.#order.column;
      if (isSorted) head.ariaSort = this.#order.isDescending ? 'descending' : 'ascending';
      else head.removeAttribute('aria-sort');
    }
  }

  /** @param {Entry} entry */
  #make(entry) {
    entry.line = new Line(entry.row.id);
    entry.line.select(entry.row.id === this.#selected);
    this.#showTimes(entry);
    this.#watcher.observe(entry.line.node);
  }

  /** @param {Entry} entry */
  #showTimes({ line, row }) {
    line?.fill(row);
    line?.tick(row, this.#now());
  }

  /** @param {Entry} entry */
  #take(entry) {
    if (entry.line === undefined) return;
    this.#watcher.unobserve(entry.line.node);
    entry.line.node.remove();
    entry.line = undefined;
    entry.isSeen = false;
  }

  /** @param {Element} node @param {boolean} isSeen */
  #see(node, isSeen) {
    const entry = this.#entries.get(/** @type {HTMLElement} */ (node).dataset.id ?? '');
    if (entry?.line?.node !== node) return;
    entry.isSeen = isSeen;
    if (isSeen) entry.line.tick(entry.row, this.#now());
  }
}

/**
 * The arrow keys go from line to line.
 * @param {KeyboardEvent} event
 */
function moveFocus(event) {
  const line = event.target instanceof Element ? event.target.closest('tr') : undefined;
  const lines = new Map([
    ['ArrowDown', line?.nextElementSibling],
    ['ArrowUp', line?.previousElementSibling],
  ]);
  const to = lines.get(event.key);
  if (!to) return;
  event.preventDefault();
  to.querySelector('button')?.focus();
}

/**
 * @param {string | number | undefined} a
 * @param {string | number | undefined} b
 * @param {boolean} isDescending
 */
function compare(a, b, isDescending) {
  if (a === b) return 0;
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return a < b === isDescending ? 1 : -1;
}
