import { lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();

/** The holds that the store was asked for, in the order of the calls, by the names of their jobs. */
const askedBy = ({ store }: Setup, ids: ReadonlyMap<string, string>): (string | undefined)[] =>
  store.calls.flatMap(({ operation, holdId }) => (operation === 'acquire' ? [ids.get(holdId as string)] : []));

/** Asks for `key` in a job of this name. */
function ask(setup: Setup, name: string, waitMs = 60_000): void {
  outcomeOf(setup.job(name).in(() => lock.acquire('key', { waitMs })));
}

/** Sees by its owner whose call an acquire is: each job has a trace of its own. */
function watchOwners({ store }: Setup): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  const acquire = store.acquire.bind(store);
  store.acquire = (request, terms) => {
    owners.set(request.holdId, request.owner);
    return acquire(request, terms);
  };
  return owners;
}

describe('The first acquires of a process', () => {
  it('The first acquires reach the store in their order, at whatever moment a newcomer finds the subscription in force', async () => {
    for (let ticks = 0; ticks < 16; ticks += 1) {
      const setup = setUp();
      const owners = watchOwners(setup);
      const open = setup.store.gate('subscribe');
      for (const name of ['first', 'second']) ask(setup, name);
      await setup.clock.settle();
      open();
      for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
      ask(setup, 'newcomer');
      await setup.clock.settle();
      expect([ticks, ...askedBy(setup, owners)]).toEqual([ticks, 'first', 'second', 'newcomer']);
    }
  });

  it('The first acquires reach the store in their order if a newcomer arrives when the time to subscribe has ended', async () => {
    const setup = setUp();
    const owners = watchOwners(setup);
    setup.store.always('subscribe', { kind: 'lostCall' });
    for (const name of ['first', 'second']) ask(setup, name);
    await setup.clock.settle();
    // The timers are due, and have not run.
    setup.clock.skip(setup.locks.settings.storeTimeoutMs / 2);
    ask(setup, 'newcomer');
    await setup.clock.advance(1);
    expect(askedBy(setup, owners)).toEqual(['first', 'second', 'newcomer']);
  });

  it('The first acquires reach the store in their order if a listener of one of their events acquires as well', async () => {
    const setup = setUp();
    const owners = watchOwners(setup);
    const open = setup.store.gate('subscribe');
    const abort = new AbortController();
    outcomeOf(setup.job().in(() => lock.acquire('key', { signal: abort.signal })));
    ask(setup, 'second');
    setup.locks.on('aborted', () => ask(setup, 'newcomer'));
    abort.abort();
    open();
    await setup.clock.settle();
    expect(askedBy(setup, owners)).toEqual(['second', 'newcomer']);
  });

  it('The first acquires reach the store in their order if one after the other finds that the store refuses to subscribe', async () => {
    const setup = setUp();
    const owners = watchOwners(setup);
    setup.store.always('subscribe', { kind: 'rejected', error: new Error('NOPERM') });
    ask(setup, 'first');
    await Promise.resolve();
    ask(setup, 'second');
    for (let tick = 0; tick < 5; tick += 1) await Promise.resolve();
    ask(setup, 'third');
    await setup.clock.settle();
    expect(askedBy(setup, owners)).toEqual(['first', 'second', 'third']);
  });
});

describe('A hold that was granted before its process was subscribed', () => {
  it.each([
    ['a try', () => lock.tryAcquire('key')],
    ['a batch', () => lock.acquireAll(['key', 'other'])],
    ['an acquire that does not wait', () => lock.acquire('key', { waitMs: 0 })],
  ])('A hold from before the subscription learns at once of a forced release: %s', async (_, acquire) => {
    const setup = setUp();
    const lost = setup.events('lost');
    setup.store.next('subscribe', { kind: 'lateCall', ms: 100 });
    const hold = await setup.clock.settled(outcomeOf<unknown>(setup.job().in<Promise<unknown>>(acquire)));
    expect(hold.state).toBe('fulfilled');
    expect(await setup.sibling().locks.forceRelease('key')).toBe(true);
    await setup.clock.advance(100);
    expect(lost).toMatchObject([{ key: 'key' }]);
  });

  it('A hold from before the subscription is not checked if it was released, or was granted later', async () => {
    const setup = setUp();
    const open = setup.store.gate('subscribe');
    const job = setup.job();
    await (await job.in(() => lock.tryAcquire('key')))?.release();
    open();
    await setup.clock.settle();
    await job.in(() => lock.tryAcquire('key'));
    await setup.clock.settle();
    expect(setup.store.count('renew')).toBe(0);
  });
});

describe('A fault of the stream', () => {
  it('A fault of the stream is reported once, and again when messages have arrived in between', async () => {
    const setup = setUp();
    const errors = setup.events('storeError');
    ask(setup, 'waiter');
    await setup.clock.settle();
    const fault = { kind: 'fault', error: new Error('READONLY') } as const;
    for (const message of [fault, fault, { kind: 'resubscribed' } as const, fault]) setup.store.broadcast(message);
    await setup.clock.settle();
    expect(errors).toMatchObject([
      { operation: 'subscribe', error: fault.error },
      { operation: 'subscribe', error: fault.error },
    ]);
  });
});
