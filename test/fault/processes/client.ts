/**
 * A process that locks as it is told by messages, and writes its history to a file: each entry is there before the next
 * step, so that a kill at any time loses none.
 */
import { openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AcquireOptions, createLocks, type LocksOptions } from '../../../src/core/index.ts';
import { deposit } from '../ledger.ts';
import { type Held, Recorder } from '../recorder.ts';
import { seeded } from '../seed.ts';
import { Counter, type Counting } from './counter.ts';
import { type Mix, mixedWork } from './mixed-work.ts';
import { openStore, type StoreSetup } from './open-store.ts';

export interface ClientSetup {
  readonly name: string;
  readonly store: StoreSetup;
  readonly file: string;
  readonly locks?: LocksOptions;
}

export type Order =
  | { readonly act: 'acquire'; readonly key: string; readonly options: AcquireOptions; readonly trace?: string }
  | { readonly act: 'release'; readonly of: number }
  /** Acquires and releases for so long, and until it has had one; one of the keys at a time in each of the lines. */
  | {
      readonly act: 'work';
      readonly keys: readonly string[];
      readonly lines: number;
      readonly ms: number;
      readonly seed: number;
      /** How long each hold lasts at most; 4 by default. */
      readonly holdMs?: number;
      /** Where each hold adds one to a balance. */
      readonly ledger?: string;
    }
  /** All kinds of acquires, and requests, for so long; see `mixedWork`. */
  | ({ readonly act: 'mix' } & Mix)
  /** Counts in a database under the locks, until `stopCounting`. */
  | ({ readonly act: 'count' } & Counting)
  | { readonly act: 'stopCounting' }
  | { readonly act: 'look'; readonly of: number }
  /** Blocks the event loop; with a key, right after its acquire was sent. */
  | { readonly act: 'block'; readonly ms: number; readonly key?: string }
  | { readonly act: 'fail' }
  | { readonly act: 'close'; readonly drainMs: number }
  | { readonly act: 'end' };

export type Sent = Order & { readonly id: number };

/** What a hold says of itself. */
export interface Look {
  readonly isHeld: boolean;
  readonly isAborted: boolean;
  readonly events: readonly string[];
}

const setup = JSON.parse(process.argv[2] as string) as ClientSetup;
const file = openSync(setup.file, 'a');
const now = (): number => Number(process.hrtime.bigint()) / 1e6;
const recorder = new Recorder(setup.name, now, (entry) => {
  writeSync(file, `${JSON.stringify(entry)}\n`);
});
const opened = openStore(setup.store);
const store = recorder.watched(opened.store);
const locks = recorder.follow(createLocks({ store, ...setup.locks }));
const events: string[] = [];
for (const event of ['lost', 'storeError', 'timeout'] as const) {
  locks.on(event, (payload) => void events.push('operation' in payload ? `${event} ${payload.operation}` : event));
}
const held = new Map<number, Held>();
let counter: Counter | undefined;

process.on('message', (order: Sent) => {
  obey(order).then(
    (value) => answer({ id: order.id, value }),
    (error: { code?: string; message: string; outcome?: string; status?: number }) =>
      answer({
        id: order.id,
        error: { code: error.code ?? error.message, outcome: error.outcome, status: error.status },
      }),
  );
});
process.once('SIGTERM', () => {
  void end(2_000);
});
void opened.ready.then(() => answer({ id: 0 }));

function answer(message: object): void {
  process.send?.(message);
}

async function obey(order: Sent): Promise<unknown> {
  if (order.act === 'acquire') return acquire(order.id, order.key, order.options, order.trace);
  if (order.act === 'release') return held.get(order.of)?.release();
  if (order.act === 'look') return look(order.of);
  if (order.act === 'work') return work(order);
  if (order.act === 'mix') return mixedWork(recorder, { name: setup.name, folder: dirname(setup.file) }, order);
  if (order.act === 'count') return count(order);
  if (order.act === 'stopCounting') return counter?.stop();
  if (order.act === 'block') return block(order.id, order.ms, order.key);
  if (order.act === 'close') return locks.close({ drainMs: order.drainMs });
  if (order.act === 'end') return end(0);
  // Inside the critical section, as far as the store knows.
  setImmediate(() => {
    throw new Error('Failed with a lock held');
  });
}

async function acquire(id: number, key: string, options: AcquireOptions, trace?: string): Promise<number> {
  const one = await recorder.acquire(key, options, trace);
  held.set(id, one);
  return one.hold.fence;
}

function count(counting: Counting): void {
  counter = new Counter(recorder, setup.name, counting);
}

function look(of: number): Look {
  const hold = held.get(of)?.hold;
  return { isHeld: hold?.isHeld() ?? false, isAborted: hold?.signal.aborted ?? false, events };
}

async function block(id: number, ms: number, key?: string): Promise<unknown> {
  // One that waits would ask for the stream of messages first.
  const acquired = key === undefined ? undefined : acquire(id, key, { waitMs: 0 });
  // The acquire is written before the loop stands still.
  await new Promise((resolve) => setImmediate(resolve));
  const until = performance.now() + ms;
  while (performance.now() < until);
  return acquired;
}

async function work({ keys, lines, ms, seed, holdMs = 4, ledger }: Order & { act: 'work' }): Promise<number> {
  const random = seeded(seed);
  const until = performance.now() + ms;
  let count = 0;
  const line = async (): Promise<void> => {
    while (performance.now() < until || count === 0) {
      const key = keys[Math.floor(random() * keys.length)] as string;
      try {
        const one = await recorder.acquire(key);
        const pause = (): Promise<void> => sleep(random() * holdMs);
        if (ledger === undefined) await pause();
        const isDone = ledger === undefined || (await deposit(ledger, one.hold.fence, pause));
        if (isDone) count += 1;
        // A lost hold's release rejects; the history has the loss.
        await one.release().catch(() => {});
      } catch {
        // Refused, as the history says: the next one may fare better.
        await sleep(5);
      }
    }
  };
  await Promise.all(Array.from({ length: lines }, line));
  return count;
}

/** Nothing of the package's may keep the process alive after this: it is not ended by `process.exit`. */
async function end(drainMs: number): Promise<void> {
  const closing = locks.close({ drainMs });
  for (const one of held.values()) one.release().catch(() => {});
  await closing;
  recorder.forget();
  await opened.close();
  // After the answer.
  setImmediate(() => process.disconnect?.());
}
