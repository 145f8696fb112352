// The holders of a lock, a card for each. Several holds or waits of one trace are shown as the tree of its branches.

import { make, makeTime } from './dom.mjs';
import { branchNames, counted } from './format.mjs';

/**
 * @typedef {import('../lock-details.ts').LockDetails} Lock
 * @typedef {Lock['holds'][number]} Hold
 * @typedef {{ branch: string, node: HTMLElement }} Entry
 */

/**
 * The holders of the lock, and the waiters within the same traces.
 * @param {Lock} lock
 * @param {number} maxWaiters How many waiters to look at.
 * @returns {HTMLElement[]}
 */
export function holders({ holds, waiters, localWaiters, permits }, maxWaiters) {
  if (holds.length + localWaiters.length === 0) {
    return [make('p', 'nobody', 'Nobody. It is free, or its next holder is about to take it.')];
  }
  /** Functions that create the entries of each tree, by trace, or by the name of a detached hold. @type {Map<string, ((isAlone: boolean) => Entry)[]>} */
  const families = new Map();
  const family = (/** @type {string} */ name) => families.get(name) ?? families.set(name, []).get(name) ?? [];
  for (const hold of holds) {
    family(hold.traceId ?? `/${hold.holdId}`).push((isAlone) => ({
      branch: hold.branch,
      node: card(hold, permits?.limit, isAlone),
    }));
  }
  for (const { holdId, traceId, branch } of localWaiters.slice(0, maxWaiters)) {
    const text = 'waits for another branch, in this process';
    family(traceId).push(() => ({ branch, node: wait(holdId, branch, text) }));
  }
  for (const [index, { holdId, traceId, branch, waitsFor }] of waiters.slice(0, maxWaiters).entries()) {
    const whom = waitsFor.length === 0 ? 'others' : branchNames(waitsFor);
    const text = `waits for ${whom}, number ${(index + 1).toLocaleString('en')} in the queue`;
    families.get(traceId)?.push(() => ({ branch, node: wait(holdId, branch, text) }));
  }
  return [...families].map(([traceId, members]) => {
    const [only] = members;
    if (members.length === 1 && only !== undefined) return only(true).node;
    const node = make('section', 'family');
    const heading = make('p', 'trace', 'Trace ');
    heading.append(make('code', '', traceId));
    node.append(heading, tree(members.map((each) => each(false))));
    return node;
  });
}

/**
 * Each entry beneath that of the closest branch around its own.
 * @param {Entry[]} entries
 */
function tree(entries) {
  const top = make('ul', 'tree');
  /** @type {Map<string, HTMLElement>} */
  const items = new Map();
  for (const { branch, node } of entries.toSorted((a, b) => depthOf(a.branch) - depthOf(b.branch))) {
    let above = around(branch);
    while (above !== undefined && !items.has(above)) above = around(above);
    const item = make('li', '');
    item.append(node);
    listIn(above === undefined ? undefined : items.get(above), top).append(item);
    if (!items.has(branch)) items.set(branch, item);
  }
  return top;
}

/**
 * @param {HTMLElement | undefined} item
 * @param {HTMLElement} top
 */
function listIn(item, top) {
  if (item === undefined) return top;
  const last = item.lastElementChild;
  if (last instanceof HTMLUListElement) return last;
  const list = make('ul', 'tree');
  item.append(list);
  return list;
}

/** @param {string} branch */
function depthOf(branch) {
  return branch === '' ? 0 : branch.split('/').length;
}

/**
 * The branch around a branch; undefined around the root.
 * @param {string} branch
 */
function around(branch) {
  return branch === '' ? undefined : branch.slice(0, Math.max(0, branch.lastIndexOf('/')));
}

/**
 * @param {Hold} hold
 * @param {number | undefined} permits
 * @param {boolean} isAlone Whether nothing else shows its trace.
 */
function card({ traceId, branch, route, instance, isDetached, mode, fence, holdId }, permits, isAlone) {
  const list = make('dl', 'holder');
  list.append(
    ...(traceId === undefined || !isAlone ? [] : pair('Trace', make('code', '', traceId))),
    ...(branch === '' && isAlone ? [] : pair('Branch', branchNode(branch))),
    ...(route === undefined ? [] : pair('Route', make('code', '', route))),
    ...(instance === undefined ? [] : pair('Instance', make('code', '', instance))),
    ...(isDetached ? pair('Instance', make('span', '', 'none, it is detached')) : []),
    ...pair('Held for', makeTime(holdId)),
    ...pair('Lease left', makeTime(holdId, 'time left')),
    ...pair('Mode', make('span', '', meaningOf(mode, permits))),
    ...pair('Fence', make('code', '', String(fence))),
    ...pair('Hold', make('code', '', holdId)),
  );
  return list;
}

/**
 * @param {string} holdId
 * @param {string} branch
 * @param {string} text
 */
function wait(holdId, branch, text) {
  const node = make('div', 'wait');
  const who = make('span', 'who');
  who.append('Branch ', branchNode(branch), make('span', 'remark', text));
  node.append(who, makeTime(holdId));
  return node;
}

/** @param {string} branch */
function branchNode(branch) {
  return branch === '' ? make('span', '', 'root') : make('code', '', branch);
}

/**
 * @param {Hold['mode']} mode
 * @param {number | undefined} permits
 */
function meaningOf(mode, permits) {
  if (mode === 'permit') return `one of ${counted(permits ?? 1, 'permit')}`;
  return mode === 'read' ? 'read, shared with other readers' : 'write, alone';
}

/**
 * A term and its value.
 * @param {string} term
 * @param {HTMLElement} value
 */
function pair(term, value) {
  const description = make('dd', '');
  description.append(value);
  return [make('dt', '', term), description];
}
