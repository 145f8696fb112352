import { type Hold, LockStoreError, LockTimeoutError, lock, type StoreGrant } from '../../../src/core/index.ts';
import type { AcquireTerms, ReleaseTerms } from '../../../src/core/model/store.ts';
import type { StoreCall } from '../../support/stores/fake-store.ts';
import { coreTests, type Outcome, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;

/** As a store that knows which copies of an acquire may still reach it. */
function replying(setup: Setup, mayArriveLater: boolean): void {
  const acquire = setup.store.acquire.bind(setup.store);
  jest.spyOn(setup.store, 'acquire').mockImplementation(async (request, terms) => ({
    ...(await acquire(request, terms)),
    mayArriveLater,
  }));
}

/** A waiter whose grant has overtaken the reply to its acquire, which `open` lets through. */
async function overtaken(setup: Setup, other: Setup) {
  const first = await taken(other);
  const open = setup.store.gate('acquire');
  const waiter = await queued(setup);
  await first.release();
  return { open, waiter };
}

/** A waiter whose grant was sent in a message that got lost. */
async function missed(setup: Setup): Promise<Outcome<Hold>> {
  const first = await taken(setup.sibling());
  const waiter = await queued(setup);
  setup.store.isMute = true;
  await first.release();
  await setup.clock.settle();
  return waiter;
}

describe('A grant at a bad moment', () => {
  it('A grant at the instant of the timeout is handed over, and nobody holds two', async () => {
    const setup = setUp();
    const first = await taken(setup);
    const late = await queued(setup, { waitMs: 1_000 });
    const next = await queued(setup);
    setup.clock.after(1_000, () => void first.release());
    await setup.clock.advance(1_000);
    await setup.clock.settle();
    expect(late.error).toBeInstanceOf(LockTimeoutError);
    expect(next.state).toBe('fulfilled');
  });

  it('A grant whose message arrives after the timeout is handed over', async () => {
    const setup = setUp();
    const other = setup.sibling();
    const first = await taken(other);
    const late = await queued(setup, { waitMs: 100 });
    const next = await queued(other);
    setup.store.isMute = true;
    setup.clock.after(99, () => void first.release());
    await setup.clock.advance(100);
    setup.store.isMute = false;
    await setup.clock.settle();
    expect(late.state).toBe('rejected');
    await setup.clock.advance(1_500);
    expect(next.state).toBe('fulfilled');
  });

  it('A grant that overtakes the reply to its own acquire is kept until that reply', async () => {
    const setup = setUp();
    const { open, waiter } = await overtaken(setup, setup.sibling());
    await setup.clock.settle();
    expect(waiter.state).toBe('pending');
    const acquires = setup.store.count('acquire');
    open();
    await setup.clock.settle();
    expect(waiter.value?.isHeld()).toBe(true);
    expect(setup.store.count('acquire')).toBe(acquires);
  });

  it('A grant that overtakes its reply is kept, even if one of another key overtakes its own later', async () => {
    const setup = setUp();
    const own = setup.sibling().job();
    const keys = ['a', 'b'] as const;
    const holds = await Promise.all(keys.map((key) => own.in(() => lock.acquire(key))));
    const opens = keys.map(() => setup.store.gate('acquire'));
    const waiters = keys.map((key) => outcomeOf(setup.job().in(() => lock.acquire(key))));
    await setup.clock.settle();
    const acquires = setup.store.count('acquire');
    for (const hold of holds) {
      await hold.release();
      await setup.clock.advance(500);
    }
    for (const open of opens) open();
    await setup.clock.settle();
    expect(waiters.map(({ value }) => value?.isHeld())).toEqual([true, true]);
    expect(setup.store.count('acquire')).toBe(acquires);
  });

  it('A grant in the late reply to a release is used', async () => {
    const setup = setUp({ claimMs: 9_000, pollMs: 60_000 });
    const first = await taken(setup);
    const waiter = await queued(setup, { waitMs: 60_000 });
    setup.store.next('release', { kind: 'lateReply', ms: 2_500 });
    setup.store.always('release', down);
    const released = outcomeOf(first.release());
    await setup.clock.advance(2_499);
    expect(released.error).toBeInstanceOf(LockStoreError);
    expect(waiter.state).toBe('pending');
    await setup.clock.advance(1);
    expect(waiter.value?.isHeld()).toBe(true);
  });

  it('A grant that overtook a reply which never arrives is released', async () => {
    const setup = setUp();
    const other = setup.sibling();
    const first = await taken(other);
    setup.store.next('acquire', { kind: 'lostReply' });
    const waiter = await queued(setup);
    await first.release();
    await setup.clock.advance(2_000);
    expect(waiter.error).toBeInstanceOf(LockStoreError);
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A grant to an acquire that gave up long ago, of which the store never heard, is released at once', async () => {
    const setup = setUp({ leaseMs: 1_000 });
    const other = setup.sibling();
    const first = await taken(other);
    const late = await queued(setup, { waitMs: 100 });
    const next = await queued(setup, { waitMs: 60_000 });
    setup.store.always('release', down);
    await setup.clock.advance(20_000);
    expect(late.error).toBeInstanceOf(LockTimeoutError);
    setup.store.heal();
    await first.release();
    await setup.clock.settle();
    expect(next.value?.isHeld()).toBe(true);
  });

  it('A grant with less than a third of its claim left is confirmed with the store before it is used', async () => {
    const setup = setUp({ claimMs: 900, pollMs: 60_000, storeTimeoutMs: 50_000 });
    const { open, waiter } = await overtaken(setup, setup.sibling());
    await setup.clock.advance(700);
    const acquires = setup.store.count('acquire');
    const openPoll = setup.store.gate('acquire');
    open();
    await setup.clock.settle();
    expect(setup.store.count('acquire')).toBe(acquires + 1);
    expect(waiter.state).toBe('pending');
    openPoll();
    await setup.clock.settle();
    expect(waiter.value?.isHeld()).toBe(true);
    expect(waiter.value?.remainingMs()).toBeLessThanOrEqual(200);
  });

  it('A grant whose claim has lapsed is not used: its waiter queues again', async () => {
    const setup = setUp({ claimMs: 900, pollMs: 60_000, storeTimeoutMs: 50_000 });
    const other = setup.sibling();
    const { open, waiter } = await overtaken(setup, other);
    await setup.clock.advance(1_000);
    const second = await queued(other);
    expect(second.state).toBe('fulfilled');
    open();
    await setup.clock.settle();
    expect(waiter.state).toBe('pending');
    await second.value?.release();
    await setup.clock.settle();
    expect(waiter.value?.fence).toBeGreaterThan(second.value!.fence);
  });

  it('A grant is never held for longer than its claim after it was received, whatever its end', async () => {
    const setup = setUp({ claimMs: 900 });
    await taken(setup, { leaseMs: 60_000 });
    const holdIds: string[] = [];
    const waiter = await queued(setup);
    for (const { operation, holdId } of setup.store.calls) if (operation === 'acquire') holdIds.push(holdId!);
    const grant: StoreGrant = { holdId: holdIds.at(-1)!, fence: 2 ** 52, endMs: 2 ** 50, isClaim: true };
    setup.store.broadcast({ kind: 'granted', grant });
    await setup.clock.settle();
    expect(waiter.value?.remainingMs()).toBeLessThanOrEqual(900);
    setup.store.always('renew', down);
    await setup.clock.advance(900);
    expect(waiter.value?.isHeld()).toBe(false);
    await setup.clock.advance(10);
  });

  it('A grant whose end is not a number is confirmed with the store, and not used', async () => {
    const setup = setUp();
    await taken(setup);
    const waiter = await queued(setup);
    const holdId = setup.store.calls.findLast(({ operation }) => operation === 'acquire')?.holdId as string;
    const acquires = setup.store.count('acquire');
    setup.store.broadcast({ kind: 'granted', grant: { holdId, fence: 2 ** 52, endMs: Number.NaN, isClaim: true } });
    await setup.clock.settle();
    expect(waiter.state).toBe('pending');
    expect(setup.store.count('acquire')).toBe(acquires + 1);
  });

  it('A grant for an unknown waiter changes nothing', async () => {
    const setup = setUp();
    const hold = await taken(setup);
    const waiter = await queued(setup);
    const grant: StoreGrant = { holdId: 'nobody', fence: 2 ** 52, endMs: 2 ** 50, isClaim: true };
    setup.store.broadcast({ kind: 'granted', grant });
    setup.store.broadcast({ kind: 'lost', holdId: 'nobody' });
    await setup.clock.settle();
    expect([waiter.state, hold.isHeld()]).toEqual(['pending', true]);
  });

  it('A grant that arrives twice is one hold', async () => {
    const setup = setUp();
    const other = setup.sibling();
    const first = await taken(other);
    const waiter = await queued(setup);
    const grants: StoreGrant[] = [];
    setup.store.onMessage = (message) => {
      if (message.kind === 'granted') grants.push(message.grant);
    };
    await first.release();
    await setup.clock.settle();
    expect(grants).toHaveLength(1);
    const [grant] = grants;
    setup.store.broadcast({ kind: 'granted', grant: grant! });
    await waiter.value?.release();
    setup.store.broadcast({ kind: 'granted', grant: grant! });
    await setup.clock.settle();
    expect(await setup.store.remains()).toEqual([]);
  });
});

it('A reply that queues a waiter that has given up queues nothing', async () => {
  const setup = setUp();
  const waiting = setup.events('waiting');
  await taken(setup.sibling());
  setup.store.next('acquire', { kind: 'lateReply', ms: 2_500 });
  const late = await queued(setup);
  await setup.clock.advance(2_500);
  expect(late.error).toBeInstanceOf(LockStoreError);
  const acquires = setup.store.count('acquire');
  await setup.clock.advance(5_000);
  expect(waiting).toEqual([]);
  expect(setup.store.count('acquire')).toBe(acquires);
});

it.each([
  ['undone where a copy of it may still arrive', true],
  ['not undone where none can', false],
])('An acquire that is refused is %s', async (_, mayArriveLater) => {
  const setup = setUp();
  await taken(setup);
  replying(setup, mayArriveLater);
  const refused = await queued(setup, { waitMs: 0 });
  expect(refused.error).toBeInstanceOf(LockTimeoutError);
  const { holdId } = setup.store.calls.findLast(({ operation }) => operation === 'acquire') ?? {};
  const releases = setup.store.calls.filter(({ operation }) => operation === 'release');
  expect(releases.map((call) => call.holdId)).toEqual(mayArriveLater ? [holdId] : []);
});

describe('A waiter that gives up', () => {
  /** How long the store was asked to remember the waiter that gave up. */
  async function rememberedMs(setup: Setup, meanwhile: () => unknown = () => undefined): Promise<number> {
    await taken(setup.sibling());
    const stop = new AbortController();
    await queued(setup, { signal: stop.signal });
    await meanwhile();
    stop.abort();
    await setup.clock.settle();
    const release = setup.store.calls.findLast(({ operation }) => operation === 'release') as StoreCall;
    return (release.terms as ReleaseTerms).tombstoneMs;
  }

  it('It is forgotten at once if no acquire of its can arrive any more', async () => {
    const setup = setUp();
    replying(setup, false);
    expect(await rememberedMs(setup)).toBe(0);
  });

  it('It is remembered if a copy of its acquire may arrive later', async () => {
    const setup = setUp();
    replying(setup, true);
    expect(await rememberedMs(setup)).toBeGreaterThan(0);
  });

  it('A release is remembered if the store does not know whether an acquire may still arrive', async () => {
    expect(await rememberedMs(setUp())).toBeGreaterThan(0);
  });

  it('It is remembered while a poll for it has no reply', async () => {
    const setup = setUp();
    replying(setup, false);
    const poll = async (): Promise<void> => {
      setup.store.next('acquire', { kind: 'lostReply' });
      await setup.clock.advance(1_250);
    };
    expect(await rememberedMs(setup, poll)).toBeGreaterThan(0);
  });
});

it('A poll asks for the newest waiter that is left when a newer one has given up', async () => {
  const setup = setUp();
  await taken(setup.sibling());
  await queued(setup);
  await queued(setup);
  const { holdId } = setup.store.calls.findLast(({ operation }) => operation === 'acquire') as StoreCall;
  const stop = new AbortController();
  await queued(setup, { signal: stop.signal });
  stop.abort();
  await setup.clock.advance(1_250);
  const poll = setup.store.calls.findLast(({ operation }) => operation === 'acquire') as StoreCall;
  expect((poll.terms as AcquireTerms).newest?.holdId).toBe(holdId);
});

describe('Messages that get lost', () => {
  it('A lost message is found at once after a resubscription', async () => {
    const setup = setUp();
    const waiter = await missed(setup);
    setup.store.isMute = false;
    setup.store.broadcast({ kind: 'resubscribed' });
    await setup.clock.settle();
    expect(waiter.value?.isHeld()).toBe(true);
  });

  it('A lost message is found sooner if the holder has little left: a dead holder costs its lease, not a poll more', async () => {
    const setup = setUp({ pollMs: 10_000 });
    await taken(setup.sibling(), { leaseMs: 300, renew: false });
    setup.store.always('release', { kind: 'lostCall' });
    const waiter = await queued(setup);
    await setup.clock.advance(330);
    expect(waiter.value?.isHeld()).toBe(true);
  });
});

describe('A store that forgot everything', () => {
  it('A store that forgot everything gets all waiters again, and none is left behind', async () => {
    const setup = setUp({ waitMs: 60_000 });
    const first = await taken(setup, { leaseMs: 60_000 });
    const waiters = [];
    for (let n = 0; n < 5; n++) waiters.push(await queued(setup));
    await setup.clock.advance(1);
    await setup.store.forget();
    await setup.clock.advance(1_250);
    const order = waiters.map((waiter) => waiter.state);
    expect(order.filter((state) => state === 'fulfilled')).toHaveLength(1);
    expect((await setup.store.inspect('key')).waiters).toHaveLength(4);
    for (let n = 0; n < 5; n++) {
      const granted = waiters.find((waiter) => waiter.value?.isHeld());
      expect(granted?.value?.fence).toBeGreaterThan(first.fence);
      await granted?.value?.release();
      await setup.clock.settle();
    }
    expect(waiters.every((waiter) => waiter.state === 'fulfilled')).toBe(true);
  });

  it('A store that forgot everything gets all waiters again, even if its reply to the first of them was lost', async () => {
    const setup = setUp();
    await taken(setup.sibling());
    const waiters = [await queued(setup, { waitMs: 60_000 }), await queued(setup, { waitMs: 60_000 })];
    await setup.store.forget();
    await taken(setup.sibling());
    setup.store.next('acquire', { kind: 'rejectedReply', error: new Error('ECONNRESET') });
    await setup.clock.advance(5_000);
    expect((await setup.store.inspect('key')).waiters).toHaveLength(waiters.length);
  });
});
