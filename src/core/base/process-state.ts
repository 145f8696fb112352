import { AsyncLocalStorage } from 'node:async_hooks';
import type { Locks } from '../runtime/locks.ts';
import type { Scope } from '../scope/scope.ts';

/**
 * What all installed copies of this package share in a process: two contexts would be two owners of one request.
 * `version` changes when its shape does.
 */
interface ProcessState {
  readonly version: 1;
  readonly scopes: AsyncLocalStorage<Scope>;
  /** What `traceContext` knows of a request, by the raw request. */
  readonly requests: WeakMap<object, object>;
  configured: Locks | undefined;
  /** Created and not closed, while none is configured: from then on nobody asks, and who replaces one may not close it. */
  readonly created: Set<Locks>;
  readonly warned: Set<string>;
}

const slot = Symbol.for('reenlock');
/** Of this version's copies, where the slot was another version's first. */
const ownSlot = Symbol.for('reenlock.1');

/** The one state of this process. That of copies of another version is left alone: requests run by it. */
export function processState(): ProcessState {
  const holder = globalThis as { [slot]?: ProcessState; [ownSlot]?: ProcessState };
  const first = holder[slot];
  if (first?.version === 1) return first;
  if (holder[ownSlot] !== undefined) return holder[ownSlot];
  const state: ProcessState = {
    version: 1,
    scopes: new AsyncLocalStorage(),
    requests: new WeakMap(),
    configured: undefined,
    created: new Set(),
    warned: new Set(),
  };
  holder[first === undefined ? slot : ownSlot] = state;
  return state;
}

/** The scope of the calling code, if the async context has one. */
export function currentScope(): Scope | undefined {
  return processState().scopes.getStore();
}

/** Runs a function, and all that it begins, in a scope. */
export function runInScope<T>(scope: Scope, run: () => T): T {
  return processState().scopes.run(scope, run);
}

/** Tells the operator something once in this process's life, as a warning with a code and a page to read. */
export function warnOnce(code: string, message: string): void {
  const { warned } = processState();
  if (warned.has(code)) return;
  warned.add(code);
  process.emitWarning(message, { type: 'ReenlockWarning', code, detail: `See docs/errors.md, "${code}".` });
}
