// The stream of changes. Its connection is opened again whenever it is lost.

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
    const parts = (text + value).split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? [];
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
