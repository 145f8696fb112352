// Generated from page/* by `node scripts/build-page.mjs`. Do not edit.
export const pageFiles: Readonly<Record<string, string>> = {
  'board.css': `:root {
  color-scheme: light dark;
  --ground: #f5f6f8;
  --card: #ffffff;
  --line: #dfe3e8;
  --text: #1b2430;
  --faint: #5a6675;
  --accent: #3451c6;
  --accent-ground: #e9edfc;
  --busy: #8a4b00;
  --busy-ground: #fff4e0;
  --busy-mark: #e09422;
  --danger: #b3261e;
  --danger-text: #ffffff;
  --good: #1c7a4a;
  --shadow: 0 1px 2px rgb(20 30 50 / 8%), 0 4px 16px rgb(20 30 50 / 5%);
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  --code: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}

@media (prefers-color-scheme: dark) {
  :root {
    --ground: #11151b;
    --card: #1a2028;
    --line: #2d3642;
    --text: #e6eaf0;
    --faint: #9aa7b6;
    --accent: #9db4ff;
    --accent-ground: #232d4a;
    --busy: #ffc46b;
    --busy-ground: #2e2617;
    --busy-mark: #d08a1f;
    --danger: #ffb4ab;
    --danger-text: #4a0b07;
    --good: #6fd6a0;
    --shadow: 0 1px 2px rgb(0 0 0 / 40%);
  }
}

* {
  box-sizing: border-box;
}

body {
  margin: 0;
  min-height: 100vh;
  display: flex;
  flex-direction: column;
  background: var(--ground);
  color: var(--text);
  font: 15px / 1.45 var(--sans);
}

h1,
h2,
h3,
p,
dl,
dd,
ol {
  margin: 0;
  padding: 0;
}

/* Names that change the direction of text change their own alone. */
code,
.key,
.name,
.category,
#panel-key {
  unicode-bidi: isolate;
}

code,
#panel-key {
  font-family: var(--code);
  font-size: 0.92em;
}

:focus-visible {
  outline: 2px solid var(--accent);
  outline-offset: 1px;
}

.unseen {
  position: absolute;
  width: 1px;
  height: 1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}

/* The line at the top */

header {
  display: flex;
  flex-wrap: wrap;
  align-items: baseline;
  gap: 4px 20px;
  padding: 12px 24px;
  background: var(--card);
  border-bottom: 1px solid var(--line);
}

h1 {
  font-size: 19px;
  font-weight: 650;
}

header p {
  color: var(--faint);
  font-size: 13px;
}

#connection::before {
  content: "";
  display: inline-block;
  width: 9px;
  height: 9px;
  margin-right: 7px;
  border-radius: 50%;
  background: var(--busy-mark);
}

#connection[data-state="live"] {
  color: var(--good);
}

#connection[data-state="live"]::before {
  background: var(--good);
}

#connection[data-state="denied"] {
  color: var(--danger);
}

#user {
  margin-left: auto;
}

/* What there is in all */

main {
  flex: 1;
  display: flex;
  flex-direction: column;
  gap: 16px;
  padding: 20px 24px;
  min-height: 0;
}

#notice {
  padding: 10px 14px;
  border-radius: 8px;
  background: var(--busy-ground);
  color: var(--busy);
}

#totals {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(150px, 1fr));
  gap: 12px;
}

#totals div {
  padding: 12px 16px;
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 10px;
  box-shadow: var(--shadow);
}

#totals dt {
  color: var(--faint);
  font-size: 13px;
}

#totals dd {
  font-size: 25px;
  font-weight: 620;
  font-variant-numeric: tabular-nums;
  letter-spacing: -0.01em;
}

#totals.contended #total-waiting,
#totals.contended #longest-wait {
  color: var(--busy);
}

@media (max-width: 900px) {
  header,
  main {
    padding-inline: 14px;
  }

  #totals dd {
    font-size: 20px;
  }
}
`,
  'cards.css': `/* On a phone each lock is a card: its key in full, then each value with the name of its column. */
@media (max-width: 900px) {
  #list table,
  #split:has(#panel:not([hidden])) table {
    display: block;
    min-width: 0;
  }

  #list thead,
  #list tbody {
    display: block;
  }

  #list thead tr {
    display: flex;
    flex-wrap: wrap;
    border-bottom: 1px solid var(--line);
  }

  #list thead th {
    position: static;
    width: auto;
    border: 0;
  }

  .line {
    display: grid;
    grid-template-columns: repeat(auto-fit, minmax(140px, 1fr));
    gap: 2px 14px;
    padding: 10px 12px;
    border-bottom: 1px solid var(--line);
  }

  .line .cell {
    padding: 0;
    border-bottom: 0;
    overflow-wrap: anywhere;
    text-align: left;
    white-space: normal;
  }

  .line .who {
    display: inline;
  }

  .line .key-cell,
  .line .name {
    grid-column: 1 / -1;
  }

  .line .key-cell {
    border-left: 0;
  }

  .line.contended {
    box-shadow: inset 3px 0 var(--busy-mark);
  }

  .line .name[data-label]::before,
  .line .number[data-label]::after {
    content: attr(data-label) / "";
    color: var(--faint);
    font: 12px var(--sans);
  }

  .line .name[data-label]::before {
    margin-right: 6px;
  }

  .line .number[data-label]::after {
    margin-left: 6px;
  }
}
`,
  'controls.css': `/* The filters */

#filters {
  display: flex;
  flex-wrap: wrap;
  align-items: end;
  gap: 12px 16px;
}

label > span {
  display: block;
  margin-bottom: 3px;
  color: var(--faint);
  font-size: 13px;
}

label.grow {
  flex: 1 1 260px;
  max-width: 440px;
}

label.check {
  display: flex;
  align-items: center;
  gap: 7px;
  padding: 7px 0;
}

label.check > span {
  margin: 0;
  color: var(--text);
  font-size: 15px;
}

#count {
  margin-left: auto;
  padding: 7px 0;
  color: var(--faint);
  font-variant-numeric: tabular-nums;
}

input[type="search"],
input[type="text"],
select {
  width: 100%;
  min-height: 37px;
  padding: 6px 10px;
  border: 1px solid color-mix(in srgb, var(--faint) 65%, var(--card));
  border-radius: 8px;
  background: var(--card);
  color: var(--text);
  font: inherit;
}

select {
  max-width: 15em;
}

input::placeholder {
  color: var(--faint);
  opacity: 1;
}

input[type="checkbox"] {
  width: 17px;
  height: 17px;
  margin: 0;
  accent-color: var(--accent);
}

/* Buttons */

.danger,
#cancel-release {
  padding: 8px 14px;
  border: 1px solid var(--danger);
  border-radius: 8px;
  background: none;
  color: var(--danger);
  font: inherit;
  font-weight: 600;
  cursor: pointer;
}

#cancel-release {
  border-color: var(--line);
  color: var(--text);
  font-weight: 400;
}

.danger:hover:enabled,
#confirm-release:enabled {
  background: var(--danger);
  color: var(--danger-text);
}

button:disabled {
  opacity: 0.5;
  cursor: not-allowed;
}
`,
  'dom.mjs': `// Finds, creates and writes nodes of the page.

/**
 * The element with an id: the page has it.
 * @param {string} id
 */
export function find(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * An element whose content is text, never markup.
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
 * A running time, which \`Panel\` updates.
 * @param {string} holdId The hold or waiter that it belongs to.
 * @param {'time' | 'time left'} className
 */
export function makeTime(holdId, className = 'time') {
  const node = make('span', className);
  node.dataset.of = holdId;
  return node;
}

/**
 * Writes the text of a node. Leaves an equal text alone: what marks a text, or reads it out, begins again at each change.
 * @param {Node} node
 * @param {string} text
 */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
`,
  'feed.mjs': `// The stream of changes. Its connection is opened again whenever it is lost.

/**
 * @typedef {import('../lock-row.ts').LockRow} LockRow
 * @typedef {import('../viewer.ts').BoardUser} BoardUser
 * @typedef {Omit<import('../lock-scanner.ts').ScanStatus, 'failedSinceMs'> & { failedMs?: number }} Status
 * @typedef {{ nowMs: number, isFirst: boolean, rows: LockRow[], gone: string[], status: Status }} Update
 * @typedef {'live' | 'lost' | 'denied' | 'crowded'} State
 * @typedef {object} Listener
 * @property {(user: BoardUser) => void} onUser Called first on each connection, and when the user's rights change.
 * @property {(update: Update) => void} onUpdate
 * @property {(state: State, retryMs?: number) => void} onState
 */

/** The server sends a message every ten seconds: after this time without one, the connection is dead. */
const silenceMs = 30_000;
const firstRetryMs = 500;
const maxRetryMs = 10_000;

/**
 * Reads the stream for as long as the page is open.
 * @param {Listener} listener
 */
export async function follow(listener) {
  let retryMs = firstRetryMs;
  for (;;) {
    const { state, waitMs } = await connection(listener, () => {
      retryMs = firstRetryMs;
    });
    // Only a reload, after signing in again, can help.
    if (state === 'denied') return listener.onState(state);
    const pauseMs = waitMs ?? retryMs;
    listener.onState(state, pauseMs);
    retryMs = Math.min(2 * retryMs, maxRetryMs);
    await onlineOr(pauseMs);
  }
}

/**
 * One connection, from its request to its end, whatever ends it.
 * @param {Listener} listener
 * @param {() => void} onOpen
 * @returns {Promise<{ state: State, waitMs?: number }>}
 */
async function connection(listener, onOpen) {
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(), silenceMs);
  try {
    const headers = { Accept: 'text/event-stream' };
    const response = await fetch('stream', { headers, redirect: 'manual', signal: abort.signal });
    // A redirect leads to a page to sign in at.
    if (response.type === 'opaqueredirect' || [401, 403].includes(response.status)) return { state: 'denied' };
    if (response.status === 503 && response.headers.has('Retry-After')) {
      return { state: 'crowded', waitMs: 1000 * Number(response.headers.get('Retry-After')) };
    }
    if (!response.ok || response.body === null) return { state: 'lost' };
    onOpen();
    listener.onState('live');
    for await (const { event, data } of messages(response.body)) {
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), silenceMs);
      if (event === 'user') listener.onUser(data);
      else if (event === 'update') listener.onUpdate(data);
      else if (event === 'leave' && data.reason === 'denied') return { state: 'denied' };
    }
    return { state: 'lost' };
  } catch {
    return { state: 'lost' };
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

/**
 * The messages of a stream of Server-Sent Events.
 * @param {ReadableStream<Uint8Array>} body
 */
async function* messages(body) {
  const reader = body.pipeThrough(/** @type {ReadableWritablePair} */ (new TextDecoderStream())).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (text + value).split('\\n\\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const [, event, data] = /^event: (.*)\\ndata: (.*)$/.exec(part) ?? [];
      if (data !== undefined) yield { event, data: JSON.parse(data) };
    }
  }
}

/**
 * Resolves after a while, or once the network is back.
 * @param {number} ms
 */
function onlineOr(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
    addEventListener('online', resolve, { once: true });
  });
}
`,
  'filters.mjs': `// Filters the locks: by words, by category, or only those with waiters.

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
    const option = new Option(name === '' ? 'Without' : name, \`=\${name}\`);
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
    const found = isAll ? counted(all, 'lock') : \`\${shown.toLocaleString('en')} of \${counted(all, 'lock')}\`;
    this.#count.textContent = isKnown || all > 0 ? found : '';
    this.#empty.hidden = shown > 0;
    const none = isKnown ? 'Nobody holds a lock now, and nobody waits for one.' : 'No lock is known yet.';
    this.#empty.textContent = all > 0 ? 'No lock matches.' : none;
  }
}
`,
  'format.mjs': `// Numbers, times and branches as people read them.

/**
 * A duration, in its two largest units. Below ten seconds with tenths, since most locks are that short.
 * @param {number} ms
 */
export function duration(ms) {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 9.95) return \`\${seconds.toFixed(1)} s\`;
  if (seconds < 59.5) return \`\${Math.round(seconds)} s\`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 60) return \`\${minutes} min \${two(Math.round(seconds) % 60)} s\`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return \`\${hours} h \${two(minutes % 60)} min\`;
  return \`\${Math.floor(hours / 24)} d \${hours % 24} h\`;
}

/**
 * A number with its unit.
 * @param {number} number
 * @param {string} one
 * @param {string} many
 */
export function counted(number, one, many = \`\${one}s\`) {
  return \`\${number.toLocaleString('en')} \${number === 1 ? one : many}\`;
}

/**
 * The path of a branch, its trace first.
 * @param {{ traceId?: string | undefined, branch: string }} of
 */
export function branchPath({ traceId, branch }) {
  if (traceId === undefined) return 'a detached hold';
  return branch === '' ? traceId : \`\${traceId}/\${branch}\`;
}

const maxNamed = 3;

/**
 * Branches of one trace, the first few of many.
 * @param {readonly string[]} branches
 */
export function branchNames(branches) {
  const names = branches.slice(0, maxNamed).map((branch) => (branch === '' ? 'the root' : \`branch \${branch}\`));
  const rest = branches.length - names.length;
  return [...names, ...(rest > 0 ? [counted(rest, 'other')] : [])].join(', ');
}

/**
 * A branch, its first and last parts if it has more than two.
 * @param {string} branch
 */
export function shortBranch(branch) {
  const parts = branch.split('/');
  return parts.length > 2 ? \`\${parts[0]}/…/\${parts.at(-1)}\` : branch;
}

/** @param {number} number */
function two(number) {
  return String(number).padStart(2, '0');
}
`,
  'holders.mjs': `// The holders of a lock, a card for each. Several holds or waits of one trace are shown as the tree of its branches.

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
    family(hold.traceId ?? \`/\${hold.holdId}\`).push((isAlone) => ({
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
    const text = \`waits for \${whom}, number \${(index + 1).toLocaleString('en')} in the queue\`;
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
  if (mode === 'permit') return \`one of \${counted(permits ?? 1, 'permit')}\`;
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
`,
  'index.html': `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>Locks</title>
    <link rel="stylesheet" href="board.css" />
    <link rel="stylesheet" href="controls.css" />
    <link rel="stylesheet" href="table.css" />
    <link rel="stylesheet" href="cards.css" />
    <link rel="stylesheet" href="panel.css" />
    <script type="module" src="main.mjs"></script>
  </head>
  <body>
    <header>
      <h1>Locks</h1>
      <p id="connection" role="status" data-state="connecting">Connecting…</p>
      <p id="scan"></p>
      <p id="user"></p>
    </header>
    <main>
      <p id="notice" role="alert" hidden></p>
      <dl id="totals">
        <div><dt>Keys held</dt><dd id="total-held">–</dd></div>
        <div><dt>Waiting</dt><dd id="total-waiting">–</dd></div>
        <div><dt>Longest hold</dt><dd id="longest-hold">–</dd></div>
        <div><dt>Longest wait</dt><dd id="longest-wait">–</dd></div>
      </dl>
      <search>
      <form id="filters">
        <label class="grow">
          <span>Find a key, a trace or an instance</span>
          <input id="text" type="search" autocomplete="off" spellcheck="false" placeholder="order:42" />
        </label>
        <label>
          <span>Category</span>
          <select id="category"><option value="">All</option></select>
        </label>
        <label class="check"><input id="contended" type="checkbox" /> <span>Only with waiters</span></label>
        <p id="count"></p>
      </form>
      </search>
      <div id="split">
        <section id="list" aria-label="Locks">
          <table>
            <caption class="unseen">Locks that are held or waited for</caption>
            <thead>
              <tr>
                <th scope="col"><button type="button" class="sort" data-sort="key">Key</button></th>
                <th scope="col"><button type="button" class="sort" data-sort="holder">Held by</button></th>
                <th scope="col" class="column-instance detail"><button type="button" class="sort" data-sort="instance">Instance</button></th>
                <th scope="col" class="number column-time"><button type="button" class="sort" data-sort="held">Held for</button></th>
                <th scope="col" class="number column-time detail"><button type="button" class="sort" data-sort="lease">Lease left</button></th>
                <th scope="col" class="number column-waiting"><button type="button" class="sort" data-sort="waiters">Waiting</button></th>
                <th scope="col" class="number column-wait"><button type="button" class="sort" data-sort="wait">Longest wait</button></th>
              </tr>
            </thead>
            <tbody id="rows"></tbody>
          </table>
          <p id="empty" hidden></p>
        </section>
        <section id="panel" aria-labelledby="panel-key" hidden>
          <div class="panel-head">
            <h2 id="panel-key" tabindex="-1">–</h2>
            <button id="close-panel" type="button" aria-label="Close">✕</button>
          </div>
          <p id="panel-category"></p>
          <h3>Holds it</h3>
          <div id="holders"></div>
          <h3 id="waiters-title">Waits for it</h3>
          <ol id="waiters" aria-labelledby="waiters-title"></ol>
          <div id="panel-actions">
            <button id="ask-release" class="danger" type="button">Force release…</button>
            <p id="read-only">You may look, but not release.</p>
          </div>
        </section>
      </div>
    </main>
    <dialog id="release" aria-labelledby="release-title">
      <form id="release-form" method="dialog">
        <h2 id="release-title">Force release</h2>
        <p id="release-what"></p>
        <p class="warning">
          The holder learns that it has lost the lock, and the next waiter gets it. Work that the holder has begun is not
          undone: only a fence that your data store compares stops a late write.
        </p>
        <label>
          <span>Reason, for the audit log</span>
          <input id="reason" type="text" maxlength="500" autocomplete="off" required />
        </label>
        <p id="release-error" role="alert"></p>
        <div class="buttons">
          <button id="cancel-release" type="button">Cancel</button>
          <button id="confirm-release" class="danger" type="submit">Release the lock</button>
        </div>
      </form>
    </dialog>
    <p id="announcement" class="unseen" role="status"></p>
  </body>
</html>
`,
  'line.mjs': `// One line of the table. Changes of its lock are written once, its times again and again while it is visible.

import { make, write } from './dom.mjs';
import { branchPath, counted, duration, shortBranch } from './format.mjs';

/** @typedef {import('../lock-row.ts').LockRow} LockRow */

const maxDots = 5;

export class Line {
  /** The \`tr\`. */
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
    write(this.#branch, branch === '' ? '' : \`/\${shortBranch(branch)}\`);
    this.#holder.title = holder === undefined || branch === '' ? '' : branchPath(holder);
    this.#who.classList.toggle('note', holder?.mode === 'read' || holder?.mode === 'permit');
    const readers = holds > 1 ? counted(holds, 'reader') : 'reads';
    this.#who.dataset.note = permits === undefined ? readers : \`\${permits.held} of \${counted(permits.limit, 'permit')}\`;
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
`,
  'main.mjs': `// Puts the page together: the stream fills the table, and a selection there fills the panel.

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
    find('user').textContent = \`\${name} · \${mayForceRelease ? 'may release' : 'read-only'}\`;
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
    history.replaceState(null, '', \`#lock=\${encodeURIComponent(id)}\`);
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
      notes.push(\`The lock store has not replied since \${this.#downSince}.\`);
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
  return \`Scanned \${Math.min(scanned, total).toLocaleString('en')} of \${total.toLocaleString('en')} names\`;
}

/** @param {State | 'down'} state @param {number} [retryMs] */
function showState(state, retryMs = 0) {
  const again = \`trying again in \${duration(retryMs)}\`;
  const words = {
    live: 'Live',
    down: 'The store does not reply',
    lost: \`Connection lost, \${again}\`,
    denied: 'You may not see this board. Sign in, then reload the page.',
    crowded: \`Too many pages of this board are open, \${again}\`,
  };
  const connection = find('connection');
  write(connection, words[state]);
  connection.dataset.state = state;
  document.body.classList.toggle('old', state !== 'live');
}

new Page();
`,
  'panel.css': `/* The panel */

#panel {
  width: min(400px, 42vw);
  padding: 16px 16px 0;
}

.panel-head {
  display: flex;
  align-items: start;
  gap: 12px;
}

#panel-key {
  flex: 1;
  font-size: 18px;
  overflow-wrap: anywhere;
}

#panel-key:focus-visible {
  outline: none;
}

#close-panel {
  border: 0;
  border-radius: 6px;
  padding: 4px 8px;
  background: none;
  color: var(--faint);
  font: inherit;
  cursor: pointer;
}

#close-panel:hover {
  background: var(--ground);
  color: var(--text);
}

#panel-category {
  color: var(--faint);
  font-size: 13px;
}

#panel h3 {
  margin: 18px 0 6px;
  font-size: 13px;
  font-weight: 650;
  color: var(--faint);
}

.holder {
  display: grid;
  grid-template-columns: auto minmax(0, 1fr);
  gap: 3px 14px;
  padding: 10px 12px;
  border: 1px solid var(--line);
  border-radius: 8px;
  font-size: 14px;
}

#holders > * + * {
  margin-top: 8px;
}

/* A trace with several holds or waits, as the tree of its branches */

.family .trace {
  margin-bottom: 8px;
  color: var(--faint);
  font-size: 14px;
  overflow-wrap: anywhere;
}

.family .trace code {
  color: var(--text);
}

.tree {
  display: grid;
  grid-template-columns: minmax(0, 1fr);
  gap: 8px;
  margin: 0;
  padding: 0;
  list-style: none;
}

.tree .tree {
  margin: 8px 0 0 7px;
  padding-left: 11px;
  border-left: 2px solid var(--line);
}

/* Deeper ones would have no room. */
.tree .tree .tree .tree .tree {
  margin-left: 0;
  padding-left: 0;
  border-left: 0;
}

.wait {
  display: flex;
  gap: 10px;
  padding: 8px 12px;
  border: 1px solid var(--line);
  border-left: 3px solid var(--busy-mark);
  border-radius: 8px;
  font-size: 14px;
}

.holder dt {
  color: var(--faint);
}

.holder dd {
  overflow-wrap: anywhere;
}

.time {
  font-variant-numeric: tabular-nums;
  white-space: nowrap;
}

.nobody {
  color: var(--faint);
}

#waiters {
  list-style: none;
  counter-reset: place;
  font-size: 14px;
}

.waiter {
  counter-increment: place;
  display: flex;
  gap: 10px;
  padding: 6px 0;
  border-bottom: 1px solid var(--line);
}

.waiter::before {
  content: counter(place) ".";
  min-width: 1.6em;
  color: var(--faint);
  font-variant-numeric: tabular-nums;
}

.waiter .who,
.wait .who {
  flex: 1;
  min-width: 0;
  overflow-wrap: anywhere;
}

.waiter .remark,
.wait .remark {
  display: block;
  color: var(--faint);
  font-size: 13px;
}

.more {
  padding: 6px 0;
  color: var(--faint);
}

/* In view however many wait. */
#panel-actions {
  position: sticky;
  bottom: 0;
  margin: 18px -16px 0;
  padding: 12px 16px;
  border-top: 1px solid var(--line);
  border-radius: 0 0 10px 10px;
  background: var(--card);
}

#read-only {
  color: var(--faint);
  font-size: 13px;
}

/* The dialog */

dialog {
  width: min(520px, 92vw);
  padding: 22px;
  border: 1px solid var(--line);
  border-radius: 12px;
  background: var(--card);
  color: var(--text);
  box-shadow: 0 12px 48px rgb(0 0 0 / 30%);
}

dialog::backdrop {
  background: rgb(10 15 25 / 50%);
}

dialog h2 {
  margin-bottom: 10px;
  font-size: 18px;
}

dialog p {
  margin-bottom: 12px;
  overflow-wrap: anywhere;
}

dialog .warning {
  padding: 9px 12px;
  border-radius: 8px;
  background: var(--busy-ground);
  color: var(--busy);
  font-size: 14px;
}

#release-error {
  min-height: 1.45em;
  margin: 8px 0;
  color: var(--danger);
}

.buttons {
  display: flex;
  justify-content: end;
  gap: 10px;
}

@media (max-width: 900px) {
  #panel {
    width: auto;
    grid-row: 1;
    overflow: visible;
  }
}
`,
  'panel.mjs': `// One lock in full: all holders, and all waiters in the order of their turns.

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
    const response = await fetch(\`lock?id=\${encodeURIComponent(id)}\`);
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
      this.#category.textContent = lock.category === undefined ? '' : \`Category \${lock.category}\`;
      this.#holders.replaceChildren(...holders(lock, maxWaiters));
      this.#waiters.replaceChildren(...lock.waiters.slice(0, maxWaiters).map(waiter));
      const rest = lock.waiters.length - maxWaiters;
      if (rest > 0) this.#waiters.append(make('li', 'more', \`and \${counted(rest, 'other')}\`));
      const count = lock.waiters.length;
      this.#waitersTitle.textContent =
        count === 0
          ? \`Nobody \${lock.localWaiters.length === 0 ? '' : 'else '}waits for it\`
          : \`\${counted(count, 'request')} \${count === 1 ? 'waits' : 'wait'} for it\`;
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
    priority === 0 ? undefined : \`priority \${priority}\`,
    waitsFor.length === 0 ? undefined : \`waits for \${branchNames(waitsFor)} of its own trace\`,
  ];
  const note = notes.filter((each) => each !== undefined).join(' · ');
  if (note !== '') who.append(make('span', 'remark', note));
  item.append(who, makeTime(holdId));
  return item;
}
`,
  'release.mjs': `// Breaking a lock: a reason, a confirmation, and the fence that was seen.

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
    const others = lock.holds.length === 1 ? '' : \` and \${lock.holds.length - 1} more\`;
    const where = holder.instance === undefined ? '' : \` on \${holder.instance}\`;
    this.#what.replaceChildren(
      'Takes ',
      make('code', '', lock.key),
      ' from ',
      make('code', '', branchPath(holder)),
      \`\${others}\${where}, held for \${duration(holder.heldMs)}.\`,
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
      this.#onDone(\`\${lock.key} was released\`);
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
  return \`\${detail}.\`;
}
`,
  'table.css': `/* The table */

#split {
  flex: 1;
  display: grid;
  grid-template-columns: minmax(0, 1fr);
  gap: 16px;
  align-items: start;
  min-height: 320px;
}

#list,
#panel {
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 10px;
  box-shadow: var(--shadow);
  overflow: auto;
}

table {
  table-layout: fixed;
  width: 100%;
  min-width: 720px;
  border-collapse: separate;
  border-spacing: 0;
}

th,
td {
  overflow: hidden;
  text-align: left;
  text-overflow: ellipsis;
  white-space: nowrap;
}

thead th {
  position: sticky;
  top: 0;
  z-index: 1;
  padding: 0;
  background: var(--card);
  border-bottom: 1px solid var(--line);
}

.column-instance {
  width: 17%;
}

.column-time {
  width: 104px;
}

.column-waiting {
  width: 118px;
}

.column-wait {
  width: 132px;
}

.sort {
  width: 100%;
  padding: 9px 12px;
  border: 0;
  background: none;
  color: var(--faint);
  font: inherit;
  font-size: 13px;
  font-weight: 600;
  text-align: inherit;
  white-space: nowrap;
  cursor: pointer;
}

.sort:focus-visible {
  outline-offset: -2px;
}

.sort:hover,
[aria-sort] .sort {
  color: var(--text);
}

[aria-sort="ascending"] .sort::after {
  content: " ▲" / "";
  font-size: 0.75em;
}

[aria-sort="descending"] .sort::after {
  content: " ▼" / "";
  font-size: 0.75em;
}

.cell {
  padding: 8px 12px;
  border-bottom: 1px solid var(--line);
  font-weight: 400;
}

.key-cell {
  padding-left: 9px;
  border-left: 3px solid transparent;
  white-space: normal;
}

.name {
  font: 13px / 1.5 var(--code);
}

/* A long trace is cut, so that its branch is seen. */
.line .who {
  display: flex;
  align-items: baseline;
}

.line .trace {
  overflow: hidden;
  text-overflow: ellipsis;
}

.line .branch {
  flex: none;
}

.number {
  text-align: right;
  font-variant-numeric: tabular-nums;
}

.line {
  cursor: pointer;
}

.line:hover {
  background: color-mix(in srgb, var(--accent-ground) 45%, transparent);
}

/* Released while the pointer is over the table: it stays until the pointer has left. */
.line.gone {
  text-decoration: line-through;
}

.line.selected {
  background: var(--accent-ground);
}

.contended .key-cell {
  border-left-color: var(--busy-mark);
}

.contended .queue {
  color: var(--busy);
  font-weight: 600;
}

.key {
  margin-right: 8px;
  padding: 0;
  border: 0;
  background: none;
  color: var(--accent);
  font: 600 13px / 1.5 var(--code);
  text-align: left;
  overflow-wrap: anywhere;
  white-space: normal;
  cursor: pointer;
}

.line:hover .key {
  text-decoration: underline;
}

.category {
  display: inline-block;
  max-width: 100%;
  overflow: hidden;
  text-overflow: ellipsis;
  vertical-align: bottom;
  white-space: nowrap;
  padding: 1px 7px;
  border-radius: 99px;
  background: var(--ground);
  color: var(--faint);
  font-size: 12px;
}

.category:empty {
  display: none;
}

.note::before {
  content: attr(data-note);
  display: inline-block;
  margin-right: 8px;
  padding: 1px 7px;
  border-radius: 99px;
  background: var(--ground);
  color: var(--faint);
  font: 12px var(--sans);
}

.queue[data-dots]:not([data-dots=""])::before {
  content: attr(data-dots) / "";
  margin-right: 8px;
  color: var(--busy-mark);
  font-size: 8px;
  letter-spacing: 2px;
  vertical-align: 2px;
}

#empty {
  padding: 40px 16px;
  color: var(--faint);
  text-align: center;
}

/* Without a connection. Not fainter: it may be read all the more. */
.old #list,
.old #totals div,
.old #panel {
  border-style: dashed;
  filter: grayscale(1);
}

/* Next to the panel, which has the details of one lock. */
@media (max-width: 1599px) {
  #split:has(#panel:not([hidden])) .detail {
    display: none;
  }

  #split:has(#panel:not([hidden])) table {
    min-width: 560px;
  }
}

/* The table and the panel scroll in the rest of the window, below a notice as well. */
@media (min-width: 901px) {
  body {
    height: 100vh;
  }

  #split {
    grid-template-rows: minmax(0, 1fr);
  }

  #list,
  #panel {
    max-height: 100%;
  }

  #split:has(#panel:not([hidden])) {
    grid-template-columns: minmax(0, 1fr) auto;
  }
}
`,
  'table.mjs': `// The table: a sorted line for each lock that matches the filter. A change updates its own lines, the clock those that are
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
    const words = [row.key, row.category, ...who].join('\\n').toLowerCase();
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
`,
};
