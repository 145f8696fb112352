import { join, sep } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';

const settleMs = 3_000;
const ownCode = join(__dirname, '../../src') + sep;

/**
 * Makes every test of the file fail that leaves something behind: a timer started by src (unref'd ones too), a socket,
 * a server or a child process. What was there when the test started may stay. Unhandled rejections are jest's to
 * report; it gets the turns that are waited here for it. Call it at the top level of the file and keep the suite's own
 * hooks inside a `describe`: then it looks before the first and after the last of them.
 */
export function watchLeaks(): void {
  const timers = new Map<NodeJS.Timeout, string>();
  const unpatch: (() => void)[] = [];
  let before: Remains;

  beforeAll(() => {
    unpatch.push(recordTimers('setTimeout', timers), recordTimers('setInterval', timers));
  });
  afterAll(() => {
    for (const undo of unpatch) undo();
  });
  beforeEach(() => {
    before = remains(timers);
  });
  afterEach(async () => {
    const left = await settled(before, timers);
    if (left.length > 0) throw new Error(`The test left behind:\n${left.join('\n')}`);
  });
}

interface Remains {
  readonly timers: ReadonlySet<NodeJS.Timeout>;
  readonly resources: readonly string[];
}

/** Waits, turn by turn, until nothing more is left than there was; a leak costs the whole `settleMs`. */
async function settled(before: Remains, timers: Map<NodeJS.Timeout, string>): Promise<string[]> {
  const deadline = performance.now() + settleMs;
  while (true) {
    await turn();
    const left = difference(before, timers);
    if (left.length === 0 || performance.now() > deadline) return left;
  }
}

function difference(before: Remains, timers: Map<NodeJS.Timeout, string>): string[] {
  const now = remains(timers);
  // Compared by number: a suite's own store may have started its timer anew.
  const newTimers = [...now.timers].filter((timer) => !before.timers.has(timer));
  const ended = before.timers.size - (now.timers.size - newTimers.length);
  const extra = [...now.resources];
  for (const resource of before.resources) {
    const index = extra.indexOf(resource);
    if (index >= 0) extra.splice(index, 1);
  }
  return [...newTimers.slice(ended).map((timer) => `timer started ${timers.get(timer)}`), ...extra];
}

function remains(timers: Map<NodeJS.Timeout, string>): Remains {
  for (const timer of timers.keys()) if (isOver(timer)) timers.delete(timer);
  return { timers: new Set(timers.keys()), resources: process.getActiveResourcesInfo().filter(isKeptAlive) };
}

function isOver(timer: NodeJS.Timeout): boolean {
  return (timer as unknown as { _destroyed: boolean })._destroyed;
}

function isKeptAlive(resource: string): boolean {
  return /^(Timeout|TCP|TLS|Pipe|UDP|Process|HTTP)/.test(resource);
}

/** `getActiveResourcesInfo` does not list unref'd timers, and the core starts no others. */
function recordTimers(name: 'setTimeout' | 'setInterval', timers: Map<NodeJS.Timeout, string>): () => void {
  const original = globalThis[name] as (...args: unknown[]) => NodeJS.Timeout;
  const recording = (...args: unknown[]) => {
    const timer = original(...args);
    const callers = new Error().stack?.split('\n').filter((line) => line.includes(ownCode)) ?? [];
    const caller = callers.find((line) => !line.includes('clock.ts')) ?? callers[0];
    if (caller) timers.set(timer, caller.trim());
    return timer;
  };
  const put = (value: object) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  put(Object.assign(recording, original));
  return () => put(original);
}
