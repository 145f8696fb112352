// Puts the page together: the stream fills the table, and a selection there fills the panel.

import { find, write } from './dom.mjs';
import { follow } from './feed.mjs';
import { Filters } from './filters.mjs';
import { duration } from './format.mjs';
import { Panel } from './panel.mjs';
import { ReleaseDialog } from './release.mjs';
import { LockTable } from './table.mjs';

/**
 * @typedef {import('./feed.mjs').State} State
 * @typedef {import('./feed.mjs').Status} Status
 * @typedef {import('./feed.mjs').Update} Update
 * @typedef {import('./feed.mjs').BoardUser} BoardUser
 */

const tickMs = 500;
/** How often the lock in the panel is fetched, even if it does not change. */
const lookMs = 2_000;

class Page {
  /** The store's clock less this page's. */
  #offsetMs = 0;
  /** The lock in the panel. @type {string | undefined} */
  #selected;
  /** Whether the store has replied with all of its locks. Until then, their numbers are unknown. */
  #isKnown = false;
  /** Since when the store has not replied, in words. @type {string | undefined} */
  #downSince;
  #now = () => performance.now() + this.#offsetMs;
  #table = new LockTable(/** @type {HTMLTableElement} */ (document.querySelector('table')), this.#now, (id) =>
    this.#select(id),
  );
  #panel = new Panel(
    () => this.#deselect(),
    (lock) => this.#dialog.open(lock),
  );
  #dialog = new ReleaseDialog((message) => {
    find('announcement').textContent = message;
    this.#look();
  });
  #filters = new Filters((filter) => this.#table.show(filter));

  constructor() {
    this.#table.onRender = (shown, all) => {
      this.#filters.showCounts(shown, all, this.#isKnown);
      this.#showTotals();
    };
    addEventListener('hashchange', () => this.#openLinked());
    setInterval(() => this.#tick(), tickMs);
    setInterval(() => this.#look(), lookMs);
    this.#openLinked();
    void follow({
      onUser: (user) => this.#enter(user),
      onUpdate: (update) => this.#update(update),
      onState: showState,
    });
  }

  /** @param {BoardUser} user */
  #enter({ name, mayForceRelease = false }) {
    find('user').textContent = `${name} · ${mayForceRelease ? 'may release' : 'read-only'}`;
    this.#panel.allowRelease(mayForceRelease);
  }

  /** @param {Update} update */
  #update({ nowMs, isFirst, rows, gone, status }) {
    this.#offsetMs = nowMs - performance.now();
    // A new connection sends all rows again.
    if (isFirst) for (const { id } of this.#table.rows) this.#table.delete(id);
    for (const row of rows) this.#table.set(row);
    for (const id of gone) this.#table.delete(id);
    for (const { category } of rows) this.#filters.offer(category ?? '');
    if ([...rows.map(({ id }) => id), ...gone].includes(this.#selected ?? '')) this.#look();
    this.#isKnown ||= status.isComplete;
    // It has no lines to begin with, so that nothing else writes that there are none.
    if (isFirst || rows.length + gone.length === 0) this.#table.renderSoon();
    this.#showStatus(status);
  }

  #tick() {
    this.#table.tick();
    this.#panel.tick();
    this.#showTotals();
  }

  /**
   * Shows a lock in the panel. The address of the page names it and can be shared.
   * @param {string} id
   */
  #select(id) {
    this.#selected = id;
    this.#table.select(id);
    history.replaceState(null, '', `#lock=${encodeURIComponent(id)}`);
    void this.#panel.open(id);
  }

  #deselect() {
    const id = this.#selected ?? '';
    this.#selected = undefined;
    this.#table.select(undefined);
    history.replaceState(null, '', location.pathname + location.search);
    this.#panel.close();
    this.#table.focus(id);
  }

  #look() {
    if (this.#selected !== undefined) void this.#panel.look(this.#selected);
  }

  #openLinked() {
    const [, id] = /^#lock=(.+)$/.exec(location.hash) ?? [];
    if (id !== undefined) this.#select(decodeURIComponent(id));
  }

  /** Whether the page shows something that the store replied, even that there is no lock. */
  get #showsLocks() {
    return this.#isKnown || this.#table.rows.length > 0;
  }

  #showTotals() {
    const { rows } = this.#table;
    const held = rows.flatMap(({ holder }) => holder?.sinceMs ?? []);
    const waiting = rows.flatMap(({ waitingSinceMs }) => waitingSinceMs ?? []);
    const waiters = rows.reduce((sum, row) => sum + row.waiters, 0);
    const longest = (/** @type {number[]} */ since) =>
      since.length === 0 ? '–' : duration(this.#now() - Math.min(...since));
    const number = (/** @type {number} */ count) => (this.#showsLocks ? count.toLocaleString('en') : '–');
    find('total-held').textContent = number(held.length);
    find('total-waiting').textContent = number(waiters);
    find('longest-hold').textContent = longest(held);
    find('longest-wait').textContent = longest(waiting);
    find('totals').classList.toggle('contended', waiters > 0);
  }

  /** @param {Status} status */
  #showStatus({ scanned, total, isComplete, isFull, canList, failedMs }) {
    showState(failedMs === undefined ? 'live' : 'down');
    find('scan').textContent = canList && failedMs === undefined ? progress(scanned, total, isComplete) : '';
    const notes = [];
    if (failedMs === undefined) this.#downSince = undefined;
    else {
      // Once: the notice is read out when it changes.
      this.#downSince ??= new Date(Date.now() - failedMs).toLocaleTimeString();
      notes.push(`The lock store has not replied since ${this.#downSince}.`);
      if (this.#showsLocks) notes.push('This page is out of date.');
    }
    if (!canList) notes.push('This store can’t list its locks: only those that this process has used are shown.');
    if (isFull) notes.push('There are more locks than the board keeps. Some are missing.');
    const notice = find('notice');
    const words = notes.join(' ');
    write(notice, words);
    notice.hidden = words === '';
  }
}

/** @param {number} scanned @param {number | undefined} total Of the names, if the store can count them. @param {boolean} isComplete */
function progress(scanned, total, isComplete) {
  // Such a store is asked for so many names at a time, and may have fewer.
  if (total === undefined) return isComplete ? 'All names scanned' : 'Scanning…';
  return `Scanned ${Math.min(scanned, total).toLocaleString('en')} of ${total.toLocaleString('en')} names`;
}

/** @param {State | 'down'} state @param {number} [retryMs] */
function showState(state, retryMs = 0) {
  const again = `trying again in ${duration(retryMs)}`;
  const words = {
    live: 'Live',
    down: 'The store does not reply',
    lost: `Connection lost, ${again}`,
    denied: 'You may not see this board. Sign in, then reload the page.',
    crowded: `Too many pages of this board are open, ${again}`,
  };
  const connection = find('connection');
  write(connection, words[state]);
  connection.dataset.state = state;
  document.body.classList.toggle('old', state !== 'live');
}

new Page();
