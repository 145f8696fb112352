import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { type AcquireMessage, lock } from '../../../src/core/index.ts';
import { coreTests, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const channel = tracingChannel<unknown, AcquireMessage>('reenlock:acquire');

/** Subscribes until the test ends; returns the messages as they are at `asyncStart`. */
function subscribe(): AcquireMessage[] {
  const messages: AcquireMessage[] = [];
  const handlers = {
    start() {},
    end() {},
    asyncStart: (message: AcquireMessage) => void messages.push({ ...message }),
    asyncEnd() {},
    error() {},
  };
  channel.subscribe(handlers);
  unsubscribe = () => channel.unsubscribe(handlers);
  return messages;
}

let unsubscribe = (): void => {};
afterEach(() => unsubscribe());

describe('The channel reenlock:acquire', () => {
  it('The channel reports what was asked for, and how it ended', async () => {
    const setup = setUp();
    const messages = subscribe();
    const hold = await taken(setup, { category: 'orders' });
    const { traceId, branch, fence } = hold;
    const common = { locks: setup.locks, key: 'key', category: 'orders', mode: 'write', traceId, branch };
    expect(messages).toMatchObject([
      { ...common, caller: 'code', waitMs: 15_000, outcome: 'granted', fence, waitedMs: 0 },
    ]);
  });

  it('The channel reports a wait in the queue, and an error', async () => {
    const setup = setUp();
    await taken(setup);
    const messages = subscribe();
    const { error } = await waitOut(setup);
    expect(messages).toMatchObject([{ outcome: 'timeout', waitedMs: 100, wasQueued: true, error }]);
  });

  it.each<['granted' | 'timeout' | 'refused', (setup: Setup) => Promise<unknown>]>([
    ['granted', (setup) => taken(setup)],
    ['timeout', (setup) => taken(setup).then(() => waitOut(setup))],
    ['refused', (setup) => taken(setup).then(() => queued(setup, { waitMs: 0 }))],
  ])('The channel and the event of an acquire that ended in %s tell the same wait', async (outcome, play) => {
    const setup = setUp();
    const messages = subscribe();
    const events = setup.events(outcome);
    // Each look at the clock is a millisecond later than the one before.
    const now = setup.clock.now.bind(setup.clock);
    let looks = 0;
    jest.spyOn(setup.clock, 'now').mockImplementation(() => {
      const { monoMs, wallMs } = now();
      looks += 1;
      return { monoMs: monoMs + looks, wallMs: wallMs + looks };
    });
    await play(setup);
    expect(messages.at(-1)).toMatchObject({ outcome, waitedMs: events.at(-1)?.waitedMs });
  });

  it('The channel names the caller: a try and a batch', async () => {
    const setup = setUp();
    const messages = subscribe();
    await setup.job().in(() => lock.tryAcquire('one'));
    await setup.job().in(() => lock.acquireAll(['two', 'three']));
    expect(messages.map(({ caller }) => caller)).toEqual(['try', 'batch', 'batch']);
  });

  it('The channel does not report a local re-entry', async () => {
    const setup = setUp();
    const job = setup.job();
    await job.in(() => lock.acquire('key'));
    const messages = subscribe();
    await job.in(() => lock.acquire('key'));
    expect(messages).toEqual([]);
  });

  it('The channel runs the store call in the stores that are bound to its start', async () => {
    const setup = setUp();
    subscribe();
    const storage = new AsyncLocalStorage<string>();
    channel.start.bindStore(storage, ({ key }) => `span of ${key}`);
    const seen: (string | undefined)[] = [];
    const { store } = setup;
    const call = store.acquire.bind(store);
    jest.spyOn(store, 'acquire').mockImplementation((...args) => {
      seen.push(storage.getStore());
      return call(...args);
    });
    await taken(setup);
    channel.start.unbindStore(storage);
    expect([seen, storage.getStore()]).toEqual([['span of key'], undefined]);
  });
});

async function waitOut(setup: Setup): Promise<{ error?: unknown }> {
  const outcome = await queued(setup, { waitMs: 100 });
  await setup.clock.advance(100);
  return outcome;
}
