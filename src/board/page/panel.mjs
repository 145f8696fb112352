// One lock in full: all who hold it, and all who wait for it in the order of their turns.

import { branchPath, counted, duration } from './format.mjs';

/**
 * @typedef {{ id: string, key: string, category?: string, permits?: Permits, holds: Hold[], waiters: Waiter[] }} Lock
 * @typedef {import('../../core/model/types.ts').PermitsInfo} Permits
 * @typedef {import('../../core/model/types.ts').HoldInfo} Hold
 * @typedef {import('../../core/model/types.ts').WaiterInfo} Waiter
 */

/** More would be read by nobody. */
const maxWaiters = 200;

export class Panel {
  /** @type {Lock | undefined} */
  #lock;
  #root = element('panel');
  #key = element('panel-key');
  #category = element('panel-category');
  #holders = element('holders');
  #waiters = element('waiters');
  #waitersTitle = element('waiters-title');
  /** What is shown of whom: while it is the same, only times change. */
  #shown = '';
  /** When the lock was looked at, on the clock of this page. */
  #lookedAt = 0;
  #looks = 0;
  /** @type {{ node: HTMLElement, since?: number, until?: number }[]} */
  #times = [];
  #release = /** @type {HTMLButtonElement} */ (element('ask-release'));

  /**
   * @param {() => void} onClose
   * @param {(lock: Lock) => void} onRelease Called with the lock as it is shown.
   */
  constructor(onClose, onRelease) {
    element('close-panel').addEventListener('click', onClose);
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
  }

  /** @param {boolean} isAllowed */
  allowRelease(isAllowed) {
    this.#release.hidden = !isAllowed;
    element('read-only').hidden = isAllowed;
  }

  close() {
    this.#looks += 1;
    this.#lock = undefined;
    this.#root.hidden = true;
  }

  /**
   * Asks the store. A look that another one has overtaken shows nothing.
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

  /** Lets the times go on. */
  tick() {
    const passedMs = performance.now() - this.#lookedAt;
    for (const { node, since, until } of this.#times) {
      node.textContent = duration(since === undefined ? (until ?? 0) - passedMs : since + passedMs);
    }
  }

  /** @param {Lock} lock */
  #show(lock) {
    const ids = [...lock.holds, ...lock.waiters].map(({ holdId }) => holdId);
    const state = JSON.stringify([lock.id, lock.holds[0]?.fence, ids]);
    if (state !== this.#shown) {
      this.#shown = state;
      this.#key.textContent = lock.key;
      this.#category.textContent = lock.category === undefined ? '' : `Category ${lock.category}`;
      this.#holders.replaceChildren(...holders(lock));
      this.#waiters.replaceChildren(...lock.waiters.slice(0, maxWaiters).map(waiter));
      const rest = lock.waiters.length - maxWaiters;
      if (rest > 0) this.#waiters.append(make('li', 'more', `and ${counted(rest, 'other')}`));
      const count = lock.waiters.length;
      this.#waitersTitle.textContent =
        count === 0 ? 'Nobody waits for it' : `${counted(count, 'request')} ${count === 1 ? 'waits' : 'wait'} for it`;
    }
    const timed = [
      ...lock.holds.flatMap((hold) => [hold.heldMs, -hold.remainingMs]),
      ...lock.waiters.map((w) => w.waitedMs),
    ];
    const nodes = /** @type {HTMLElement[]} */ ([...this.#root.querySelectorAll('.time')]);
    this.#times = nodes.map((node, index) => {
      const ms = timed[index] ?? 0;
      return node.classList.contains('left') ? { node, until: -ms } : { node, since: ms };
    });
    this.tick();
  }
}

/** @param {Lock} lock */
function holders({ holds, permits }) {
  if (holds.length === 0) return [make('p', 'nobody', 'Nobody. It is free, or its next holder is about to take it.')];
  return holds.map(({ traceId, branch, instance, isDetached, mode, fence, holdId }) => {
    const list = make('dl', 'holder');
    list.append(
      ...(traceId === undefined ? [] : pair('Trace', make('code', '', traceId))),
      ...(branch === '' ? [] : pair('Branch', make('code', '', branch))),
      ...(instance === undefined ? [] : pair('Instance', make('code', '', instance))),
      ...(isDetached ? pair('Instance', make('span', '', 'none, it is detached')) : []),
      ...pair('Held for', make('span', 'time')),
      ...pair('Lease left', make('span', 'time left')),
      ...pair('Mode', make('span', '', meaningOf(mode, permits?.limit))),
      ...pair('Fence', make('code', '', String(fence))),
      ...pair('Hold', make('code', '', holdId)),
    );
    return list;
  });
}

/**
 * @param {Hold['mode']} mode
 * @param {number | undefined} permits
 */
function meaningOf(mode, permits) {
  if (mode === 'permit') return `one of ${counted(permits ?? 1, 'permit')}`;
  return mode === 'read' ? 'read, shared with other readers' : 'write, alone';
}

/** @param {Waiter} waiter */
function waiter({ traceId, branch, instance, mode, priority }) {
  const item = make('li', 'waiter');
  const who = make('span', 'who');
  who.append(make('code', '', branchPath({ traceId, branch })));
  const notes = [instance, mode === 'read' ? 'reads' : undefined, priority === 0 ? undefined : `priority ${priority}`];
  const note = notes.filter((each) => each !== undefined).join(' · ');
  if (note !== '') who.append(make('span', 'remark', note));
  item.append(who, make('span', 'time'));
  return item;
}

/**
 * A term and what it says.
 * @param {string} term
 * @param {HTMLElement} value
 */
function pair(term, value) {
  const description = make('dd', '');
  description.append(value);
  return [make('dt', '', term), description];
}

/**
 * An element whose content is text, whatever it says.
 * @param {string} name
 * @param {string} className
 */
function make(name, className, text = '') {
  const node = document.createElement(name);
  if (className !== '') node.className = className;
  node.textContent = text;
  return node;
}

/** @param {string} id */
function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}
