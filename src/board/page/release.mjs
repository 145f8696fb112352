// Breaking a lock: a reason, a confirmation, and the fence that was seen.

import { find, make } from './dom.mjs';
import { branchPath, duration } from './format.mjs';

/** @typedef {import('../lock-details.ts').LockDetails} Lock */

export class ReleaseDialog {
  #dialog = /** @type {HTMLDialogElement} */ (find('release'));
  #reason = /** @type {HTMLInputElement} */ (find('reason'));
  #what = find('release-what');
  #error = find('release-error');
  #confirm = /** @type {HTMLButtonElement} */ (find('confirm-release'));
  /** The lock as the user saw it. @type {Lock | undefined} */
  #lock;
  /** @type {(message: string) => void} */
  #onDone;

  /** @param {(message: string) => void} onDone Called once the lock was released. */
  constructor(onDone) {
    this.#onDone = onDone;
    find('cancel-release').addEventListener('click', () => this.#dialog.close());
    find('release-form').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#send();
    });
    this.#reason.addEventListener('input', () => this.#enable());
  }

  /** @param {Lock} lock */
  open(lock) {
    const [holder] = lock.holds;
    if (holder === undefined) return;
    this.#lock = lock;
    const others = lock.holds.length === 1 ? '' : ` and ${lock.holds.length - 1} more`;
    const where = holder.instance === undefined ? '' : ` on ${holder.instance}`;
    this.#what.replaceChildren(
      'Takes ',
      make('code', '', lock.key),
      ' from ',
      make('code', '', branchPath(holder)),
      `${others}${where}, held for ${duration(holder.heldMs)}.`,
    );
    this.#reason.value = '';
    this.#error.textContent = '';
    this.#enable();
    this.#dialog.showModal();
    this.#reason.focus();
  }

  #enable() {
    this.#confirm.disabled = this.#reason.value.trim() === '';
  }

  async #send() {
    const lock = this.#lock;
    if (lock === undefined) return;
    this.#confirm.disabled = true;
    const refusal = await release(lock, this.#reason.value).catch(() => 'The server does not reply. Try again.');
    if (refusal === undefined) {
      this.#dialog.close();
      this.#onDone(`${lock.key} was released`);
      return;
    }
    this.#error.textContent = refusal;
    this.#enable();
  }
}

/**
 * Resolves with the reason of a refusal; with undefined once the lock is released.
 * @param {Lock} lock
 * @param {string} reason
 * @returns {Promise<string | undefined>}
 */
async function release({ id, holds }, reason) {
  const body = JSON.stringify({ id, fence: holds[0]?.fence, reason });
  const response = await fetch('release', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  if (response.ok) return undefined;
  const { detail } = await response.json();
  return `${detail}.`;
}
