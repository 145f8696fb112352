import { AsyncLocalStorage } from 'node:async_hooks';
import type { CallSite } from './call-site.ts';
import { helpPage } from './help-page.ts';

/**
 * The state that all installed copies of this package share in a process: with two async contexts, one request would have two
 * owners. It holds plain objects; the room that stores one knows its type. `version` changes when a shape does.
 */
interface ProcessState {
  readonly version: 3;
  /** The branch of the calling code: scope/branch.ts. */
  readonly branches: AsyncLocalStorage<object>;
  /** The state of `traceContext` for a request, by the raw request. */
  readonly requests: WeakMap<object, object>;
  /** The configured `Locks`: runtime/default-locks.ts. */
  configured: object | undefined;
  /** Each `Locks` that was created and not closed. Emptied by the first `configureLocks`: nothing reads it afterwards. */
  readonly created: Set<object>;
  /** Listeners of errors in callbacks of this package: safely.ts. */
  readonly faultListeners: Set<object>;
  /** The subjects of the warnings so far, by code. */
  readonly warned: Map<string, Set<string>>;
  /** Keys that were not in their plain spelling, by that: model/key-spelling.ts. */
  readonly spellings: Map<string, string>;
}

const slot = Symbol.for('reenlock');
/** For copies of this version, if a copy of another version was loaded first. */
const ownSlot = Symbol.for('reenlock.3');

/** The state of this process. It leaves the state of another version's copies alone: requests depend on it. */
export function processState(): ProcessState {
  const holder = globalThis as { [slot]?: ProcessState; [ownSlot]?: ProcessState };
  const first = holder[slot];
  if (first?.version === 3) return first;
  if (holder[ownSlot] !== undefined) return holder[ownSlot];
  const state: ProcessState = {
    version: 3,
    branches: new AsyncLocalStorage(),
    requests: new WeakMap(),
    configured: undefined,
    created: new Set(),
    faultListeners: new Set(),
    warned: new Map(),
    spellings: new Map(),
  };
  holder[first === undefined ? slot : ownSlot] = state;
  return state;
}

/** At most this many warnings of one code in a process's life: clients may choose the keys that a code warns about. */
const maxWarningsPerCode = 100;

/**
 * Warns the operator, with a code and a link to its page: once in this process's life, or once for each `subject`, such as a
 * route. `siteOf` returns where the application made the call, if its code did; the warning shows that line.
 */
export function warnOnce(code: string, message: string, subject = '', siteOf?: () => CallSite | undefined): void {
  const { warned } = processState();
  const subjects = warned.get(code) ?? new Set();
  if (subjects.has(subject) || subjects.size >= maxWarningsPerCode) return;
  warned.set(code, subjects.add(subject));
  // A guard is called by Node, in a later turn: its warning names the route.
  const line = siteOf?.()?.frames.find((frame) => !/\bnode:/.test(frame));
  const detail = `${line === undefined ? '' : `${line}\n`}See ${helpPage(code)}`;
  process.emitWarning(message, { type: 'ReenlockWarning', code, detail });
}
