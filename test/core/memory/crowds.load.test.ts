import { setImmediate as round } from 'node:timers/promises';
import { MemoryStore } from '../../../src/core/memory/memory-store.ts';
import type { HoldRequest } from '../../../src/core/model/store.ts';

const terms = { leaseMs: 60_000, queue: true, maxWaiters: 100_000, livenessMs: 60_000 };

function requestOf(i: number, over: Partial<HoldRequest> = {}): HoldRequest {
  const request = { id: 'key', holdId: `hold-${i}`, owner: `owner-${i}`, process: 'one', claimMs: 60_000 };
  return { ...request, mode: 'read', priority: 0, ...over };
}

function requests(count: number, over: (i: number) => Partial<HoldRequest>): HoldRequest[] {
  return Array.from({ length: count }, (_, i) => requestOf(i, over(i)));
}

async function readersComeAndGo(count: number): Promise<void> {
  const store = new MemoryStore();
  const readers = requests(count, () => ({}));
  for (const reader of readers) await store.acquire(reader, terms);
  const fence = (await store.inspect('key')).holds[0]?.fence as number;
  for (const reader of readers) await store.renew(reader, { leaseMs: 60_000, fence });
  for (const reader of readers) await store.release(reader, { tombstoneMs: 0 });
}

async function writersOfMixedPriorityAreServed(count: number): Promise<void> {
  const store = new MemoryStore();
  const writers = requests(count, (i) => ({ mode: 'write', priority: ((i * 7) % 201) - 100 }));
  const byId = new Map(writers.map((writer) => [writer.holdId, writer]));
  for (const writer of writers) await store.acquire(writer, terms);
  let holder = writers[0];
  while (holder !== undefined) {
    const { claims } = await store.release(holder, { tombstoneMs: 0 });
    holder = byId.get(claims[0]?.holdId ?? '');
  }
  expect((await store.inspect('key')).waiters).toEqual([]);
}

async function readersLetInAreServed(count: number): Promise<void> {
  const store = new MemoryStore();
  const writer = requestOf(-1, { mode: 'write' });
  await store.acquire(writer, terms);
  const readers = requests(count, () => ({}));
  for (const reader of readers) await store.acquire(reader, terms);
  await store.release(writer, { tombstoneMs: 0 });
  for (const reader of readers) await store.acquire(reader, terms);
  for (const reader of readers) await store.release(reader, { tombstoneMs: 0 });
}

/** The processor's time for some work, in ms: the least of three runs. */
async function cpuMs(work: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < 3; run++) {
    const start = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / 1_000);
  }
  return Math.min(...times);
}

describe('A crowd in memory', () => {
  it.each([
    ['Readers that come and go', readersComeAndGo],
    ['Writers of mixed priority', writersOfMixedPriorityAreServed],
    ['Readers that are let in together', readersLetInAreServed],
  ])('%s cost about as much each among 4,000 as among 500', async (_, work) => {
    await work(500);
    const few = await cpuMs(() => work(500));
    const many = await cpuMs(() => work(4_000));
    // 64 times if each looked at all others.
    expect(many / few).toBeLessThan(30);
  });

  /** The most messages that came to the process `one` within one round of the event loop while `act` had its effect. */
  async function longestRound(store: MemoryStore, count: number, act: () => Promise<unknown>): Promise<number> {
    let [told, before, longest] = [0, 0, 0];
    const unsubscribe = await store.subscribe('one', (message) => {
      told += 1;
      if (message.kind === 'next') void store.acquire(requestOf(Number(message.holdId.slice(5))), terms);
    });
    await act();
    const isDone = async (): Promise<boolean> => (await store.inspect('key')).waiters.length === 0 && told >= count;
    while (!(await isDone())) {
      await round();
      longest = Math.max(longest, told - before);
      before = told;
    }
    await unsubscribe();
    return longest;
  }

  it('Readers that are granted together get their grants in parts: other work has its turn', async () => {
    const store = new MemoryStore();
    const writer = requestOf(-1, { mode: 'write', process: 'another' });
    await store.acquire(writer, terms);
    for (const reader of requests(3_000, () => ({}))) await store.acquire(reader, terms);
    // Some are granted in the reply to a call of their process.
    const act = async () => store.release(writer, { tombstoneMs: 0 });
    expect(await longestRound(store, 256, act)).toBeLessThanOrEqual(257);
  });

  it('Readers that lose their holds by force learn of it in parts, in their order', async () => {
    const store = new MemoryStore();
    const readers = requests(3_000, () => ({}));
    for (const reader of readers) await store.acquire(reader, terms);
    const lost: string[] = [];
    await store.subscribe('two', () => undefined);
    const { fence } = (await store.inspect('key')).holds[0] as { fence: number };
    const unsubscribe = await store.subscribe('one', (message) => {
      if (message.kind === 'lost') lost.push(message.holdId);
    });
    await store.forceRelease('key', fence);
    await round();
    expect(lost.length).toBeLessThan(1_000);
    while (lost.length < readers.length) await round();
    expect(lost).toEqual(readers.map(({ holdId }) => holdId));
    await unsubscribe();
  });
});
