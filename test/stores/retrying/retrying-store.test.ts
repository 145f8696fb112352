import { getLock, LockConfigError, LockStoreError, LockTimeoutError, lock } from '../../../src/core/index.ts';
import type { AcquireReply, LockStore, StoreCapabilities } from '../../../src/core/model/store.ts';
import { RetryingStore } from '../../../src/stores/retrying/retrying-store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { FakeStore } from '../../support/stores/fake-store.ts';
import { coreTests, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const capabilities: StoreCapabilities = {
  queue: false,
  handOff: false,
  reachability: false,
  modes: false,
  shared: true,
};

/** The fake as a store that has no queue. It announces releases if it is asked to. */
const withoutQueue = (store: FakeStore): LockStore => ({
  capabilities,
  acquire: (request, terms) => store.acquire(request, { ...terms, queue: false }),
  renew: (request, terms) => store.renew(request, terms),
  release: (request, terms) => store.release(request, terms),
  inspect: (id) => store.inspect(id),
  forceRelease: (id, fence) => store.forceRelease(id, fence),
  subscribe: (process, listener, options) => store.subscribe(process, listener, options),
});

const setUp = coreTests((store, clock) => new RetryingStore(withoutQueue(store), clock));
const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;

const acquires = ({ store }: Setup) => store.calls.filter(({ operation }) => operation === 'acquire');

/** When the store was asked, from `startMs` on, on the clock of `setup`. */
const triesSince = (setup: Setup, startMs: number) =>
  acquires(setup).flatMap(({ atMs }) => (atMs > startMs ? [atMs - startMs] : []));

describe('An acquire that a store without a queue refuses', () => {
  it('A refused acquire waits, and is granted soon after the release', async () => {
    const setup = setUp();
    const waitings = setup.events('waiting');
    const first = await taken(setup.sibling());
    const waiter = await queued(setup);
    await setup.clock.advance(2_000);
    expect(waiter.state).toBe('pending');
    expect(waitings).toHaveLength(1);
    await first.release();
    await setup.clock.advance(10);
    expect(waiter.value?.isHeld()).toBe(true);
    expect(waiter.value?.fence).toBeGreaterThan(first.fence);
  });

  it('A refused acquire gets the refusal at once if it does not wait', async () => {
    const setup = setUp();
    await taken(setup.sibling());
    expect((await queued(setup, { waitMs: 0 })).error).toBeInstanceOf(LockTimeoutError);
    expect(await setup.job().in(() => lock.tryAcquire('key'))).toBeNull();
    // Nor does a try wait behind those who do.
    await queued(setup);
    expect(await setup.job().in(() => lock.tryAcquire('key'))).toBeNull();
    expect(acquires(setup)).toHaveLength(5);
  });

  it('A refused acquire tries after pauses with full jitter, each twice as long, and then when it is polled', async () => {
    const setup = setUp({ pollMs: 4_000 });
    await taken(setup.sibling());
    await queued(setup);
    const startMs = setup.clock.now().monoMs;
    setup.clock.nextJitter = 1;
    // The first pause was drawn with the jitter of before: half of 50.
    await setup.clock.advance(4_000);
    expect(triesSince(setup, startMs)).toEqual([25, 125, 325, 725, 1_525, 4_000]);
    // There is nobody for whom to look who holds it.
    expect(setup.store.count('inspect')).toBe(0);
  });

  it('A refused acquire tries when another one of its process is polled, which was granted too late and has joined again behind it', async () => {
    const setup = setUp({ pollMs: 2_000 });
    const first = await taken(setup.sibling());
    await queued(setup, { leaseMs: 1_000 });
    const second = await queued(setup);
    setup.store.next('acquire', { kind: 'lateReply', ms: 1_500 });
    await first.release();
    await setup.clock.advance(1_200);
    // Nobody announces the end of its lease.
    await taken(setup.sibling(), { leaseMs: 5_000, renew: false });
    await setup.clock.advance(10_000);
    expect(second.value?.isHeld()).toBe(true);
  });

  it('A refused acquire never pauses for less than 5 ms', async () => {
    const setup = setUp();
    await taken(setup.sibling());
    setup.clock.nextJitter = 0;
    await queued(setup);
    const startMs = setup.clock.now().monoMs;
    await setup.clock.advance(20);
    expect(triesSince(setup, startMs)).toEqual([5, 10, 15, 20]);
  });

  it('A refused acquire tries soon after a message, and soon after the next one again', async () => {
    const setup = setUp({ pollMs: 20_000 });
    await taken(setup.sibling());
    await queued(setup);
    await setup.clock.advance(5_000);
    const freed = { kind: 'freed', id: await idOfKey(setup) } as const;
    const startMs = setup.clock.now().monoMs;
    setup.store.broadcast(freed);
    await setup.clock.advance(510);
    expect(triesSince(setup, startMs)).toEqual([5.5]);
    setup.store.broadcast(freed);
    setup.store.broadcast({ kind: 'resubscribed' });
    await setup.clock.settle();
    setup.store.broadcast(freed);
    await setup.clock.advance(10);
    expect(triesSince(setup, startMs)).toEqual([5.5, 510, 515.5]);
  });

  it("A refused acquire does not wait beyond the end of the holder's lease", async () => {
    const setup = setUp({ pollMs: 60_000 });
    const died = setup.sibling({ leaseMs: 10_000, claimMs: 1_000 });
    await taken(died, { renew: false });
    const waiter = await queued(setup, { waitMs: 30_000 });
    setup.clock.nextJitter = 0.9;
    // The holder's process would still say that it lost the lock.
    setup.store.isMute = true;
    await setup.clock.advance(10_015);
    expect(waiter.state).toBe('fulfilled');
  });

  it('A refused acquire releases what a try is granted after it gave up', async () => {
    const setup = setUp({ storeTimeoutMs: 2_000 });
    const granted = setup.events('granted');
    const first = await taken(setup.sibling());
    const waiter = await queued(setup, { waitMs: 1_000 });
    setup.store.isMute = true;
    await setup.clock.advance(500);
    await first.release();
    setup.store.always('acquire', { kind: 'lateReply', ms: 1_500 });
    await setup.clock.advance(499);
    expect(await setup.store.remains()).toEqual(['key']);
    await setup.clock.advance(1);
    expect(waiter.state).toBe('rejected');
    setup.store.heal();
    await setup.clock.advance(3_000);
    expect(await setup.store.remains()).toEqual([]);
    expect(granted).toEqual([]);
  });

  it('A refused acquire is granted if a try is, although its own refusal arrives after that', async () => {
    const setup = setUp();
    const first = await taken(setup.sibling());
    const reply = setup.store.gate('acquire');
    const waiter = await queued(setup);
    await first.release();
    await setup.clock.advance(1_000);
    reply();
    await setup.clock.settle();
    expect(waiter.value?.isHeld()).toBe(true);
    expect(waiter.value?.remainingMs()).toBeLessThan(setup.locks.settings.leaseMs - 1_000);
  });

  it('A refused acquire waits on through failures of the store, and reports them at its end', async () => {
    const setup = setUp();
    const errors = setup.events('storeError');
    const first = await taken(setup.sibling());
    const [patient, hasty] = [await queued(setup), await queued(setup, { waitMs: 2_500 })];
    setup.store.always('acquire', down);
    await setup.clock.advance(2_900);
    expect(hasty.error).toBeInstanceOf(LockStoreError);
    expect(patient.state).toBe('pending');
    expect(errors.map(({ operation }) => operation)).toEqual(['poll', 'acquire']);
    setup.store.heal();
    await first.release();
    await setup.clock.advance(1_000);
    expect(patient.state).toBe('fulfilled');
  });

  it('A refused acquire keeps its pauses while the store fails, even if the lease was almost over before', async () => {
    const setup = setUp();
    const errors = setup.events('storeError');
    await taken(setup.sibling({ leaseMs: 10_000 }), { renew: false });
    await queued(setup, { waitMs: 30_000 });
    setup.clock.nextJitter = 0.9;
    await setup.clock.advance(9_900);
    setup.store.always('acquire', down);
    await setup.clock.advance(3_000);
    expect(errors.length).toBeLessThan(6);
  });

  it('A refused acquire waits on if the store does not reply, and uses a late reply', async () => {
    const setup = setUp();
    const errors = setup.events('storeError');
    const first = await taken(setup.sibling());
    const waiter = await queued(setup);
    setup.store.always('acquire', { kind: 'lateReply', ms: 2_010 });
    await first.release();
    await setup.clock.advance(2_005);
    expect(waiter.state).toBe('pending');
    expect(errors).toMatchObject([{ operation: 'poll', key: 'key' }]);
    await setup.clock.advance(50);
    expect(waiter.value?.isHeld()).toBe(true);
    expect(waiter.value?.remainingMs()).toBeLessThanOrEqual(setup.locks.settings.claimMs);
  });

  it('A refused acquire has a later time to try again for each waiter ahead of it', async () => {
    const setup = setUp();
    await taken(setup.sibling(), { leaseMs: 12_000, renew: false });
    const waiters = [await queued(setup, { waitMs: 100 }), await queued(setup, { waitMs: 100 })];
    await setup.clock.advance(100);
    const [first, second] = waiters.map(({ error }) => (error as LockTimeoutError).retryAfterMs) as [number, number];
    expect(second).toBe(2 * first);
  });
});

describe('The waiters of one process for a key in a store without a queue', () => {
  it('The waiters of one process try by the oldest alone; a newcomer does not try, and does not overtake', async () => {
    const setup = setUp();
    const first = await taken(setup.sibling());
    const waiters = [await queued(setup), await queued(setup), await queued(setup)];
    await setup.clock.advance(5_000);
    // The holder's, and the oldest's.
    expect(new Set(acquires(setup).map(({ holdId }) => holdId)).size).toBe(2);
    setup.store.isMute = true;
    await first.release();
    const newcomer = await queued(setup);
    await setup.clock.advance(1_000);
    expect([...waiters, newcomer].map(({ state }) => state)).toEqual(['fulfilled', 'pending', 'pending', 'pending']);
  });

  it('The waiters of one process begin with short pauses anew when one of them was granted', async () => {
    const setup = setUp();
    const first = await taken(setup.sibling());
    const [second, third] = [await queued(setup), await queued(setup)];
    await setup.clock.advance(5_000);
    await first.release();
    await setup.clock.advance(10);
    setup.store.isMute = true;
    await second.value?.release();
    await setup.clock.advance(50);
    expect(third.state).toBe('fulfilled');
  });

  it('The waiters of one process try by the next when the oldest gives up', async () => {
    const setup = setUp();
    const first = await taken(setup.sibling());
    await queued(setup, { waitMs: 100 });
    const next = await queued(setup);
    await setup.clock.advance(100);
    await first.release();
    await setup.clock.advance(10);
    expect(next.state).toBe('fulfilled');
  });

  it('The waiters of one process try once for all the messages of a release, and once more for one that arrives meanwhile', async () => {
    const setup = setUp({ pollMs: 60_000 });
    await taken(setup.sibling());
    await queued(setup, { waitMs: 60_000 });
    // Until the next pause is a long one.
    await setup.clock.advance(20_000);
    const freed = { kind: 'freed', id: await idOfKey(setup) } as const;
    const count = acquires(setup).length;
    for (let node = 0; node < 5; node++) setup.store.broadcast(freed);
    await setup.clock.advance(1);
    setup.store.broadcast(freed);
    await setup.clock.advance(9);
    expect(acquires(setup)).toHaveLength(count + 1);
    const open = setup.store.gate('acquire');
    setup.store.broadcast(freed);
    await setup.clock.advance(10);
    setup.store.broadcast(freed);
    setup.store.broadcast(freed);
    await setup.clock.advance(10);
    expect(acquires(setup)).toHaveLength(count + 2);
    open();
    await setup.clock.advance(10);
    expect(acquires(setup)).toHaveLength(count + 3);
    await setup.clock.advance(1_000);
    expect(acquires(setup)).toHaveLength(count + 3);
  });

  it('The waiters of one process try by one call at a time, even if the stream was interrupted meanwhile', async () => {
    const setup = setUp({ pollMs: 60_000 });
    await taken(setup.sibling());
    await queued(setup);
    const count = acquires(setup).length;
    const open = setup.store.gate('acquire');
    for (let n = 0; n < 3; n++) setup.store.broadcast({ kind: 'resubscribed' });
    await setup.clock.settle();
    expect(acquires(setup)).toHaveLength(count + 1);
    open();
  });

  it('A newcomer behind others asks once for the holder of the key, and does not wait if that fails', async () => {
    const setup = setUp({ storeTimeoutMs: 500 });
    await taken(setup.sibling());
    await queued(setup);
    const count = acquires(setup).length;
    expect((await queued(setup)).state).toBe('pending');
    expect([setup.store.count('inspect'), acquires(setup).length]).toEqual([1, count]);
    setup.store.next('inspect', down);
    expect((await queued(setup)).error).toMatchObject({ code: 'ERR_LOCK_STORE', cause: down.error });
    setup.store.next('inspect', { kind: 'lostCall' });
    const unanswered = await queued(setup);
    await setup.clock.advance(500);
    expect(unanswered.error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
  });

  it('The waiters of one process do not look for the holders after tries that fail', async () => {
    const setup = setUp();
    await taken(setup.sibling());
    await queued(setup);
    await queued(setup);
    setup.store.always('acquire', down);
    const looks = setup.store.count('inspect');
    await setup.clock.advance(3_000);
    expect(setup.store.count('inspect')).toBe(looks);
  });

  it('The waiters of one process try in time, even if the messages do not end', async () => {
    const setup = setUp({ pollMs: 60_000 });
    await taken(setup.sibling());
    await queued(setup, { waitMs: 60_000 });
    await setup.clock.advance(20_000);
    const freed = { kind: 'freed', id: await idOfKey(setup) } as const;
    const count = acquires(setup).length;
    for (let message = 0; message < 10; message++) {
      setup.store.broadcast(freed);
      await setup.clock.advance(3);
    }
    expect(acquires(setup).length).toBeGreaterThan(count + 2);
  });

  it('The waiters of one process are not disturbed by other keys', async () => {
    const setup = setUp({ pollMs: 60_000 });
    await taken(setup.sibling());
    await queued(setup);
    await setup.clock.advance(5_000);
    const count = acquires(setup).length;
    setup.store.broadcast({ kind: 'freed', id: 'another' });
    await setup.clock.advance(10);
    expect(acquires(setup)).toHaveLength(count);
  });

  it('The waiters of one process are overtaken by an earlier waiter whose owner was granted the key elsewhere', async () => {
    const setup = setUp();
    const other = setup.sibling();
    const first = await taken(other);
    const stranger = await queued(setup);
    const inner = await setup.clock.settled(outcomeOf(setup.job('trace').in(() => lock.acquire('key'))));
    setup.store.isMute = true;
    await first.release();
    const outer = await other.job('trace').in(() => lock.acquire('key'));
    await setup.clock.advance(1_000);
    expect(inner.value?.fence).toBe(outer.fence);
    expect(stranger.state).toBe('pending');
  });

  it('The waiters of one process are granted together if they have one owner', async () => {
    const setup = setUp();
    const first = await taken(setup.sibling());
    const mine = [1, 2].map(() => outcomeOf(setup.job('trace').in(() => lock.acquire('key'))));
    await setup.clock.settle();
    const stranger = await queued(setup);
    const late = await setup.clock.settled(outcomeOf(setup.job('trace').in(() => lock.acquire('key'))));
    await first.release();
    await setup.clock.advance(10);
    expect([...mine, late].map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
    expect(stranger.state).toBe('pending');
  });
});

describe('A store that gives another one a queue', () => {
  function stageOf(): { clock: ManualClock; fake: FakeStore; stage: StoreStage } {
    const clock = new ManualClock();
    const fake = new FakeStore(clock);
    const stage = new StoreStage();
    stage.store = new RetryingStore(withoutQueue(fake), clock);
    return { clock, fake, stage };
  }

  it('All processes that use one store stand in one line', async () => {
    const { clock, stage } = stageOf();
    const [one, two] = [await stage.process(), await stage.process()];
    const holder = one.line();
    await holder.hold();
    const first = await one.line().wait();
    const second = await two.line().wait();
    expect(await second.ask()).toMatchObject({ status: 'queued', isNew: false, position: 1 });
    await holder.release();
    await clock.advance(10);
    expect(one.messages).toMatchObject([{ kind: 'granted', grant: { holdId: first.holdId } }]);
    await first.release();
    await clock.advance(60);
    expect(two.messages).toMatchObject([{ kind: 'granted', grant: { holdId: second.holdId } }]);
    await second.release();
    await stage.end();
  });

  it('A waiter whose process gets no messages is granted by its poll alone', async () => {
    const { clock, stage } = stageOf();
    const process = stage.deafProcess();
    const holder = process.line();
    await holder.hold();
    const waiter = await process.line().wait();
    await holder.release();
    await clock.advance(5_000);
    expect((await stage.inspect()).holds).toEqual([]);
    expect(await waiter.status()).toBe('granted');
    await waiter.release();
  });

  it('A newcomer that gives up before the reply is not sent, nor queued', async () => {
    const { clock, fake, stage } = stageOf();
    const process = await stage.process();
    const holder = process.line('owner');
    await holder.hold();
    const waiter = await process.line().wait();
    const open = fake.gate('inspect');
    const newcomer = process.line('owner');
    const reply = await clock.settled(outcomeOf(newcomer.ask()));
    await newcomer.release(0);
    const count = fake.count('acquire');
    open();
    await clock.settle();
    expect(reply.value?.status).toBe('cancelled');
    expect(fake.count('acquire')).toBe(count);
    for (const line of [waiter, holder]) await line.release();
    await stage.end();
  });

  it('A poll gets what a try was granted meanwhile, with the lease that was left when the poll was sent', async () => {
    const { clock, fake, stage } = stageOf();
    const process = await stage.process();
    const holder = process.line();
    await holder.hold();
    const waiter = await process.line().wait();
    fake.next('acquire', { kind: 'lateCall', ms: 50 });
    await clock.advance(35);
    const open = fake.gate('acquire');
    const polled = outcomeOf(waiter.ask());
    await holder.release();
    await clock.advance(40);
    expect(process.messages).toMatchObject([{ kind: 'granted' }]);
    open();
    await polled.settled;
    const reply = polled.value as Extract<AcquireReply, { status: 'granted' }>;
    expect(reply.grant.endMs - reply.nowMs).toBe(longMs - 10);
    await waiter.release();
    await stage.end();
  });

  it('A newcomer whose call fails is granted what a try got for it meanwhile', async () => {
    const { clock, fake, stage } = stageOf();
    const process = await stage.process();
    const holder = process.line();
    await holder.hold();
    const store = withoutQueue(fake);
    const failed = gate();
    let calls = 0;
    const acquire: LockStore['acquire'] = async (request, terms) => {
      const reply = await store.acquire(request, terms);
      calls += 1;
      if (calls > 1) return reply;
      await failed;
      throw new LockStoreError('refused', { outcome: 'not-applied' });
    };
    stage.store = new RetryingStore({ ...store, acquire }, clock);
    const other = await stage.process();
    const newcomer = other.line();
    const reply = outcomeOf(newcomer.ask());
    await clock.settle();
    await holder.release();
    await clock.advance(10);
    expect(other.messages).toMatchObject([{ kind: 'granted' }]);
    failed.open();
    await reply.settled;
    expect(reply.value).toMatchObject({ status: 'granted', grant: { holdId: newcomer.holdId } });
    await newcomer.release();
    await stage.end();
  });

  it('An acquire beyond `maxWaiters` gets `full`, and an owner that holds the key is granted', async () => {
    const { stage } = stageOf();
    const process = await stage.process();
    const holder = process.line('owner');
    await holder.hold();
    const waiter = await process.line().wait();
    expect(await process.line().ask({ maxWaiters: 1 })).toMatchObject({ status: 'full', position: 1 });
    const inner = process.line('owner');
    expect(await inner.status({ maxWaiters: 1 })).toBe('granted');
    for (const line of [waiter, inner, holder]) await line.release();
    await stage.end();
  });

  it('A newcomer that is nested in a hold overtakes the line', async () => {
    const { stage } = stageOf();
    const process = await stage.process();
    const holder = process.line('trace/1');
    const { fence } = await holder.hold();
    const sibling = await process.line('trace/2').wait();
    const inner = process.line('trace/1/3');
    expect(await inner.ask()).toMatchObject({ status: 'granted', grant: { fence } });
    for (const line of [sibling, inner, holder]) await line.release();
    await stage.end();
  });

  it('A waiter that is nested in the hold of the line’s first is granted with it', async () => {
    const { clock, stage } = stageOf();
    const process = await stage.process();
    const holder = process.line();
    await holder.hold();
    const outer = await process.line('trace').wait();
    const stranger = await process.line().wait();
    const inner = await process.line('trace/1').wait();
    await holder.release();
    await clock.advance(10);
    const granted = [outer, inner].map(({ holdId }) => ({ kind: 'granted', grant: { holdId } }));
    expect(process.messages).toMatchObject(granted);
    for (const line of [stranger, inner, outer]) await line.release();
    await stage.end();
  });

  it('A waiter that is nested in a hold overtakes the line when its sibling releases', async () => {
    const { clock, stage } = stageOf();
    const process = await stage.process();
    const [outer, sibling] = [process.line('trace'), process.line('trace/1')];
    await outer.hold();
    await sibling.hold();
    const stranger = await process.line().wait();
    const inner = await process.line('trace/2').wait();
    await sibling.release();
    await clock.advance(100);
    expect(process.messages).toMatchObject([{ kind: 'granted', grant: { holdId: inner.holdId } }]);
    for (const line of [stranger, inner, outer]) await line.release();
    await stage.end();
  });

  it('What is no store is refused', () => {
    expect(() => new RetryingStore({} as LockStore)).toThrow(LockConfigError);
  });
});

/** What the store calls the key by. */
async function idOfKey(setup: Setup): Promise<string> {
  await setup.job().in(() => getLock('key').inspect());
  return String(setup.store.calls.findLast(({ operation }) => operation === 'inspect')?.terms);
}
