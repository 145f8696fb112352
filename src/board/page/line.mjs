// One line of the table. Changes of its lock are written once, its times again and again while it is visible.

import { make, write } from './dom.mjs';
import { branchPath, counted, duration, shortBranch } from './format.mjs';

/** @typedef {import('../lock-row.ts').LockRow} LockRow */

const maxDots = 5;

export class Line {
  /** The `tr`. */
  node = make('tr', 'line');
  #button = make('button', 'key');
  #category = make('span', 'category');
  #holder = make('td', 'cell name');
  #who = make('span', 'who');
  #trace = make('span', 'trace');
  #branch = make('span', 'branch');
  #instance = make('td', 'cell name detail');
  #held = make('td', 'cell number');
  #lease = make('td', 'cell number detail');
  #waiters = make('td', 'cell number queue');
  #wait = make('td', 'cell number queue');

  /** @param {string} id */
  constructor(id) {
    this.node.dataset.id = id;
    this.#button.type = 'button';
    this.#button.setAttribute('aria-controls', 'panel');
    const key = make('th', 'cell key-cell');
    key.scope = 'row';
    key.append(this.#button, this.#category);
    // The head of the column, for the layout of cards, which has none.
    this.#holder.dataset.label = 'held by';
    this.#instance.dataset.label = 'instance';
    this.#held.dataset.label = 'held';
    this.#lease.dataset.label = 'of the lease left';
    this.#waiters.dataset.label = 'waiting';
    this.#wait.dataset.label = 'longest wait';
    this.#who.append(this.#trace, this.#branch);
    this.#holder.append(this.#who);
    this.node.append(key, this.#holder, this.#instance, this.#held, this.#lease, this.#waiters, this.#wait);
  }

  /**
   * Writes what does not change with time.
   * @param {LockRow} row
   */
  fill({ key, category, holder, permits, holds, waiters }) {
    write(this.#button, key);
    write(this.#category, category ?? '');
    const branch = holder?.branch ?? '';
    write(this.#trace, holder === undefined ? 'nobody' : branchPath({ ...holder, branch: '' }));
    write(this.#branch, branch === '' ? '' : `/${shortBranch(branch)}`);
    this.#holder.title = holder === undefined || branch === '' ? '' : branchPath(holder);
    this.#who.classList.toggle('note', holder?.mode === 'read' || holder?.mode === 'permit');
    const readers = holds > 1 ? counted(holds, 'reader') : 'reads';
    this.#who.dataset.note = permits === undefined ? readers : `${permits.held} of ${counted(permits.limit, 'permit')}`;
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
