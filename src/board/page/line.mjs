// One line of the table. What happens to its lock is written once, its times again and again while it is seen.

import { branchPath, counted, duration } from './format.mjs';

/** @typedef {import('../lock-row.ts').LockRow} LockRow */

const maxDots = 5;

export class Line {
  /** The `tr`. */
  node = element('tr', 'line');
  #button = element('button', 'key');
  #category = element('span', 'category');
  #holder = element('td', 'cell name');
  #instance = element('td', 'cell name detail');
  #held = element('td', 'cell number');
  #lease = element('td', 'cell number detail');
  #waiters = element('td', 'cell number queue');
  #wait = element('td', 'cell number queue');

  /** @param {string} id */
  constructor(id) {
    this.node.dataset.id = id;
    this.#button.type = 'button';
    this.#button.setAttribute('aria-controls', 'panel');
    const key = element('th', 'cell key-cell');
    key.scope = 'row';
    key.append(this.#button, this.#category);
    // What the head of a column says, for cards, which have none.
    this.#holder.dataset.label = 'held by';
    this.#instance.dataset.label = 'instance';
    this.#held.dataset.label = 'held';
    this.#lease.dataset.label = 'of the lease left';
    this.#waiters.dataset.label = 'waiting';
    this.#wait.dataset.label = 'longest wait';
    this.node.append(key, this.#holder, this.#instance, this.#held, this.#lease, this.#waiters, this.#wait);
  }

  /**
   * Writes what does not change with time.
   * @param {LockRow} row
   */
  fill({ key, category, holder, permits, holds, waiters }) {
    write(this.#button, key);
    write(this.#category, category ?? '');
    write(this.#holder, holder === undefined ? 'nobody' : branchPath(holder));
    this.#holder.classList.toggle('note', holder?.mode === 'read' || holder?.mode === 'permit');
    const readers = holds > 1 ? counted(holds, 'reader') : 'reads';
    this.#holder.dataset.note =
      permits === undefined ? readers : `${permits.held} of ${counted(permits.limit, 'permit')}`;
    write(this.#instance, holder?.instance ?? '–');
    write(this.#waiters, waiters === 0 ? '–' : waiters.toLocaleString('en'));
    this.#waiters.dataset.dots = '●'.repeat(Math.min(waiters, maxDots));
    this.node.classList.toggle('contended', waiters > 0);
  }

  /**
   * Writes the times.
   * @param {LockRow} row
   * @param {number} now The store's clock.
   */
  tick({ holder, waitingSinceMs }, now) {
    write(this.#held, holder === undefined ? '–' : duration(now - holder.sinceMs));
    write(this.#lease, holder === undefined ? '–' : duration(holder.endMs - now));
    write(this.#wait, waitingSinceMs === undefined ? '–' : duration(now - waitingSinceMs));
  }

  /** @param {boolean} isSelected */
  select(isSelected) {
    this.node.classList.toggle('selected', isSelected);
    this.#button.setAttribute('aria-expanded', String(isSelected));
  }

  /** @param {boolean} isGone Whether its lock is no longer there. */
  fade(isGone) {
    this.node.classList.toggle('gone', isGone);
  }

  focus() {
    this.#button.focus();
  }
}

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {string} className
 */
function element(name, className) {
  const node = document.createElement(name);
  node.className = className;
  return node;
}

/**
 * A text that is the same is left alone.
 * @param {Node} node
 * @param {string} text
 */
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
