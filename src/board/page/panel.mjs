// One lock in full: all holders, and all waiters in the order of their turns.

import { find, make, makeTime } from './dom.mjs';
import { branchNames, branchPath, counted, duration } from './format.mjs';
import { holders } from './holders.mjs';

/**
 * @typedef {import('../lock-details.ts').LockDetails} Lock
 * @typedef {Lock['waiters'][number]} Waiter
 */

/** Nobody would read more. */
const maxWaiters = 200;

export class Panel {
  /** @type {Lock | undefined} */
  #lock;
  #root = find('panel');
  #key = find('panel-key');
  #category = find('panel-category');
  #holders = find('holders');
  #waiters = find('waiters');
  #waitersTitle = find('waiters-title');
  /** The shown content without its times: while it is equal, only times are updated. */
  #shown = '';
  /** When the lock was looked at, on the clock of this page. */
  #lookedAt = 0;
  #looks = 0;
  /** @type {{ node: HTMLElement, since?: number, until?: number }[]} */
  #times = [];
  #release = /** @type {HTMLButtonElement} */ (find('ask-release'));

  /**
   * @param {() => void} onClose
   * @param {(lock: Lock) => void} onRelease Called with the lock as it is shown.
   */
  constructor(onClose, onRelease) {
    find('close-panel').addEventListener('click', onClose);
    this.#release.addEventListener('click', () => this.#lock && onRelease(this.#lock));
    document.addEventListener('keydown', ({ key }) => {
      if (key === 'Escape' && this.isOpen && !document.querySelector('dialog[open]')) onClose();
    });
  }

  get isOpen() {
    return !this.#root.hidden;
  }

  /**
   * Shows a lock, and keeps its heading for a screen reader to begin at.
   * @param {string} id
   */
  async open(id) {
    this.#lock = undefined;
    this.#shown = '';
    this.#root.hidden = true;
    await this.look(id);
    this.#root.hidden = false;
    this.#key.focus({ preventScroll: true });
    // On a phone it opens between the filters and the list, partly below the screen.
    this.#root.scrollIntoView({ block: 'nearest' });
  }

  /** @param {boolean} isAllowed */
  allowRelease(isAllowed) {
    this.#release.hidden = !isAllowed;
    find('read-only').hidden = isAllowed;
  }

  close() {
    this.#looks += 1;
    this.#lock = undefined;
    this.#root.hidden = true;
  }

  /**
   * Asks the store. A reply to an earlier look shows nothing.
   * @param {string} id
   */
  async look(id) {
    this.#looks += 1;
    const own = this.#looks;
    const response = await fetch(`lock?id=${encodeURIComponent(id)}`);
    if (!response.ok) return;
    const lock = await response.json();
    if (own !== this.#looks) return;
    this.#lookedAt = performance.now();
    this.#lock = lock;
    this.#show(lock);
    this.#release.disabled = lock.holds.length === 0;
  }

  /** Updates the times. */
  tick() {
    const passedMs = performance.now() - this.#lookedAt;
    for (const { node, since, until } of this.#times) {
      node.textContent = duration(since === undefined ? (until ?? 0) - passedMs : since + passedMs);
    }
  }

  /** @param {Lock} lock */
  #show(lock) {
    const state = JSON.stringify(lock, (name, value) => (name.endsWith('Ms') ? undefined : value));
    if (state !== this.#shown) {
      this.#shown = state;
      this.#key.textContent = lock.key;
      this.#category.textContent = lock.category === undefined ? '' : `Category ${lock.category}`;
      this.#holders.replaceChildren(...holders(lock, maxWaiters));
      this.#waiters.replaceChildren(...lock.waiters.slice(0, maxWaiters).map(waiter));
      const rest = lock.waiters.length - maxWaiters;
      if (rest > 0) this.#waiters.append(make('li', 'more', `and ${counted(rest, 'other')}`));
      const count = lock.waiters.length;
      this.#waitersTitle.textContent =
        count === 0
          ? `Nobody ${lock.localWaiters.length === 0 ? '' : 'else '}waits for it`
          : `${counted(count, 'request')} ${count === 1 ? 'waits' : 'wait'} for it`;
    }
    const remaining = new Map(lock.holds.map(({ holdId, remainingMs }) => [holdId, remainingMs]));
    const passed = new Map([
      ...lock.holds.map(({ holdId, heldMs }) => /** @type {const} */ ([holdId, heldMs])),
      ...[...lock.waiters, ...lock.localWaiters].map((each) => /** @type {const} */ ([each.holdId, each.waitedMs])),
    ]);
    const nodes = /** @type {HTMLElement[]} */ ([...this.#root.querySelectorAll('.time')]);
    this.#times = nodes.map((node) => {
      const of = node.dataset.of ?? '';
      return node.classList.contains('left')
        ? { node, until: remaining.get(of) ?? 0 }
        : { node, since: passed.get(of) ?? 0 };
    });
    this.tick();
  }
}

/** @param {Waiter} waiter */
function waiter({ holdId, traceId, branch, route, instance, mode, priority, waitsFor }) {
  const item = make('li', 'waiter');
  const who = make('span', 'who');
  who.append(make('code', '', branchPath({ traceId, branch })));
  const notes = [
    route,
    instance,
    mode === 'read' ? 'reads' : undefined,
    priority === 0 ? undefined : `priority ${priority}`,
    waitsFor.length === 0 ? undefined : `waits for ${branchNames(waitsFor)} of its own trace`,
  ];
  const note = notes.filter((each) => each !== undefined).join(' · ');
  if (note !== '') who.append(make('span', 'remark', note));
  item.append(who, makeTime(holdId));
  return item;
}
