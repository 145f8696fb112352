import { join, sep } from 'node:path';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { patienceOfTest } from '../until.ts';

const settleMs = 3_000;
/** So often it is looked at least: a busy machine may be late with everything. */
const leastLooks = 200;
/** After so long it is looked less often. */
const restMs = 10;
/** How many recorded timers it takes until those that are over are looked for. */
const pruneEvery = 10_000;
const ownCode = join(__dirname, '../../../src') + sep;

/**
 * Makes every test fail that leaves something behind: a timer started by src (unref'd ones too), a socket, a server or a
 * child process. What was there when the test started may stay. Unhandled rejections are jest's to report; it gets the
 * turns that are waited here for it. jest calls it before each file; it looks before the first and after the last hook of a test.
 */
export function watchLeaks(): void {
  const timers = new Map<NodeJS.Timeout, Error>();
  const unpatch: (() => void)[] = [];
  let before: Remains | undefined;

  beforeAll(() => {
    unpatch.push(recordTimers('setTimeout', timers), recordTimers('setInterval', timers));
  });
  afterAll(() => {
    for (const undo of unpatch) undo();
  });
  beforeEach(() => {
    before = remains(timers);
  });
  afterEach(async function lookForLeaks() {
    // The suite's own hook has failed, which is told by itself.
    if (before === undefined) return;
    const left = await settled(before, timers);
    if (left.length > 0) throw new Error(`The test left behind:\n${left.join('\n')}`);
  });
}

interface Remains {
  readonly timers: ReadonlySet<NodeJS.Timeout>;
  readonly resources: readonly string[];
}

/** Waits until nothing more is left than there was; a leak costs the whole `settleMs`. */
async function settled(before: Remains, timers: Map<NodeJS.Timeout, Error>): Promise<string[]> {
  const start = performance.now();
  for (let looks = 1; ; looks++) {
    await turn();
    const left = difference(before, timers);
    const waitedMs = performance.now() - start;
    if (left.length === 0 || (waitedMs > Math.min(settleMs, patienceOfTest()) && looks >= leastLooks)) return left;
    // Most is over some turns later.
    if (waitedMs > restMs) await sleep(restMs);
  }
}

function difference(before: Remains, timers: Map<NodeJS.Timeout, Error>): string[] {
  const now = remains(timers);
  // Compared by number: a suite's own store may have started its timer anew.
  const newTimers = [...now.timers].filter((timer) => !before.timers.has(timer));
  const ended = before.timers.size - (now.timers.size - newTimers.length);
  const extra = [...now.resources];
  for (const resource of before.resources) {
    const index = extra.indexOf(resource);
    if (index >= 0) extra.splice(index, 1);
  }
  return [...newTimers.slice(ended).map((timer) => `timer started ${callerOf(timers.get(timer)!)}`), ...extra];
}

function remains(timers: Map<NodeJS.Timeout, Error>): Remains {
  for (const [timer, start] of timers) if (isOver(timer) || callerOf(start) === undefined) timers.delete(timer);
  return { timers: new Set(timers.keys()), resources: process.getActiveResourcesInfo().filter(isKeptAlive) };
}

/** The line of src that started a timer; undefined for those of others. */
function callerOf(start: Error): string | undefined {
  const callers = start.stack?.split('\n').filter((line) => line.includes(ownCode)) ?? [];
  return (callers.find((line) => !line.includes('clock.ts')) ?? callers[0])?.trim();
}

function isOver(timer: NodeJS.Timeout): boolean {
  return (timer as unknown as { _destroyed: boolean })._destroyed;
}

function isKeptAlive(resource: string): boolean {
  return /^(Timeout|TCP|TLS|Pipe|UDP|Process|HTTP)/.test(resource);
}

/** `getActiveResourcesInfo` does not list unref'd timers, and the core starts few others. */
function recordTimers(name: 'setTimeout' | 'setInterval', timers: Map<NodeJS.Timeout, Error>): () => void {
  const original = globalThis[name] as (...args: unknown[]) => NodeJS.Timeout;
  const recording = (...args: unknown[]) => {
    const timer = original(...args);
    // Its stack is looked at where the timer is left: to write it down costs more than most tests.
    timers.set(timer, new Error());
    if (timers.size % pruneEvery === 0) for (const known of timers.keys()) if (isOver(known)) timers.delete(known);
    return timer;
  };
  const put = (value: object) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  put(Object.assign(recording, original));
  return () => put(original);
}
