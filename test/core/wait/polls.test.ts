import { LockLimitError, LockTimeoutError, lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;

/** When the store was asked for a grant, from `startMs` on, on the clock of `setup`. */
const asksSince = ({ store }: Setup, startMs: number) =>
  store.calls.flatMap(({ operation, atMs }) => (operation === 'acquire' && atMs > startMs ? [atMs - startMs] : []));

/** How many acquires the store gets while something happens. */
async function asksDuring({ store }: Setup, happening: () => Promise<unknown>): Promise<number> {
  const before = store.count('acquire');
  await happening();
  return store.count('acquire') - before;
}

describe('The polls of a key', () => {
  it('Polls are sent every `pollMs`, the first one also after `pollMs`', async () => {
    const setup = setUp();
    await taken(setup.sibling());
    const startMs = setup.clock.now().monoMs;
    await queued(setup);
    await setup.clock.advance(4_500);
    expect(asksSince(setup, startMs)).toEqual([1_000, 2_000, 3_000, 4_000]);
  });

  it.each([
    [0, [750, 1_500, 2_250, 3_000]],
    [1, [1_250, 2_500, 3_750]],
  ])('Polls are jittered by a quarter of `pollMs` to both sides: %d', async (jitter, due) => {
    const setup = setUp();
    setup.clock.nextJitter = jitter;
    await taken(setup.sibling());
    const startMs = setup.clock.now().monoMs;
    await queued(setup);
    await setup.clock.advance(3_750);
    expect(asksSince(setup, startMs).slice(0, due.length)).toEqual(due);
  });

  it('Polls have `pollMs` for their reply, and then the next one is sent in its time', async () => {
    const setup = setUp({ storeTimeoutMs: 10_000 });
    const failures = setup.events('storeError');
    await taken(setup.sibling());
    const startMs = setup.clock.now().monoMs;
    await queued(setup, { waitMs: Number.POSITIVE_INFINITY });
    setup.store.next('acquire', { kind: 'lostCall' });
    await setup.clock.advance(1_999);
    expect(failures).toEqual([]);
    await setup.clock.advance(1_001);
    expect(failures).toMatchObject([{ operation: 'poll', error: { outcome: 'unknown' } }]);
    expect(asksSince(setup, startMs)).toEqual([1_000, 3_000]);
  });

  it.each([
    [{}, 5_000],
    [{ pollMs: 100, storeTimeoutMs: 150 }, 450],
  ])('Polls keep the process live for three of them and the deadline of a call: %p', async (options, livenessMs) => {
    const setup = setUp(options);
    await taken(setup.sibling());
    await queued(setup);
    await setup.clock.advance(1_000);
    const asks = setup.store.calls.filter(({ operation }) => operation === 'acquire');
    expect(asks.length).toBeGreaterThan(2);
    // The first is the holder's, of another process.
    for (const { terms } of asks.slice(1)) expect(terms).toMatchObject({ livenessMs });
  });

  it('Polls are not put off by newcomers', async () => {
    const setup = setUp();
    await taken(setup.sibling());
    const oldest = await queued(setup);
    const { holdId } = setup.store.calls.findLast(({ operation }) => operation === 'acquire') ?? {};
    for (let n = 0; n < 10; n++) {
      await setup.clock.advance(500);
      await queued(setup);
    }
    const asks = setup.store.calls.filter((call) => call.operation === 'acquire' && call.holdId === holdId);
    expect(asks).toHaveLength(1 + 5);
    expect(oldest.state).toBe('pending');
  });

  it('Polls are not sent for a waiter that was queued less than `pollMs` ago: a key in demand is not polled', async () => {
    const setup = setUp();
    await taken(setup.sibling(), { leaseMs: 60_000 });
    await queued(setup, { waitMs: 500 });
    const asks = await asksDuring(setup, async () => {
      for (let n = 0; n < 12; n++) {
        await setup.clock.advance(400);
        await queued(setup, { waitMs: 500 });
      }
    });
    expect(asks).toBe(12);
  });

  it('Polls are sent for the oldest waiter `pollMs` after it was queued, if the one before it has left meanwhile', async () => {
    const setup = setUp();
    await taken(setup.sibling(), { leaseMs: 60_000 });
    const startMs = setup.clock.now().monoMs;
    await queued(setup, { waitMs: 950 });
    await setup.clock.advance(900);
    await queued(setup);
    await setup.clock.advance(3_500);
    expect(asksSince(setup, startMs)).toEqual([900, 1_900, 2_900, 3_900]);
  });

  it('Polls begin again if the key is waited for again', async () => {
    const setup = setUp();
    const first = await taken(setup.sibling());
    await queued(setup, { waitMs: 100 });
    await setup.clock.advance(100);
    const waiter = await queued(setup);
    setup.store.isMute = true;
    await first.release();
    await setup.clock.advance(1_000);
    expect(waiter.value?.isHeld()).toBe(true);
  });

  it('Polls leave no timer if the wait has ended: by its time, or by the poll itself', async () => {
    const setup = setUp();
    const { clock, store } = setup;
    const other = setup.sibling();
    const first = await taken(other);
    await setup.job().in(() => lock.run('another', () => {}));
    const before = clock.timerCount;
    await queued(setup, { waitMs: 100 });
    await clock.advance(100);
    expect(clock.timerCount).toBe(before);
    const waiter = await queued(setup, { renew: false });
    store.isMute = true;
    await first.release();
    await clock.advance(1_100);
    expect(waiter.state).toBe('fulfilled');
    await waiter.value?.release();
    await other.locks.close();
    await setup.locks.close();
    expect(clock.timerCount).toBe(0);
  });

  it('Polls are one call at a time, even if the stream was interrupted meanwhile', async () => {
    const setup = setUp();
    await taken(setup.sibling());
    await queued(setup);
    const open = setup.store.gate('acquire');
    const asks = await asksDuring(setup, async () => {
      for (let n = 0; n < 3; n++) setup.store.broadcast({ kind: 'resubscribed' });
      await setup.clock.settle();
    });
    expect(asks).toBe(1);
    open();
    await setup.clock.settle();
    expect(await asksDuring(setup, () => setup.clock.advance(5_000))).toBe(5);
  });

  it('Polls are one call each, also if one is granted what a lost message said', async () => {
    const setup = setUp();
    const first = await taken(setup.sibling());
    const waiters = [await queued(setup), await queued(setup), await queued(setup)];
    setup.store.isMute = true;
    await first.release();
    expect(await asksDuring(setup, () => setup.clock.advance(1_000))).toBe(1);
    expect(waiters.map(({ state }) => state)).toEqual(['fulfilled', 'pending', 'pending']);
  });

  it('Polls are one call each while the store fails, and one more once it is back', async () => {
    const setup = setUp();
    await taken(setup.sibling(), { leaseMs: 60_000 });
    for (let n = 0; n < 4; n++) await queued(setup, { waitMs: 60_000 });
    setup.store.always('acquire', down);
    expect(await asksDuring(setup, () => setup.clock.advance(5_000))).toBe(5);
    setup.store.heal();
    expect(await asksDuring(setup, () => setup.clock.advance(5_000))).toBe(5 + 1);
  });

  it('Polls queue all waiters again in a store that has lost its data, in their order', async () => {
    const setup = setUp();
    await taken(setup.sibling());
    const ids: (string | undefined)[] = [];
    for (let n = 0; n < 4; n++) {
      await queued(setup, { waitMs: 60_000 });
      ids.push(setup.store.calls.at(-1)?.holdId);
    }
    await setup.store.forget();
    await taken(setup.sibling());
    await setup.clock.advance(1_000);
    expect((await setup.store.inspect('key')).waiters.map(({ holdId }) => holdId)).toEqual(ids);
  });

  it('Polls end a wait whose place in a store that has lost its data is taken: the queue is full', async () => {
    const setup = setUp({ maxWaitersPerKey: 1 });
    await taken(setup.sibling());
    const waiter = await queued(setup, { waitMs: 60_000 });
    await setup.store.forget();
    const other = setup.sibling({ maxWaitersPerKey: 1 });
    await taken(other);
    await queued(other, { waitMs: 60_000 });
    await setup.clock.advance(1_250);
    expect(waiter.error).toBeInstanceOf(LockLimitError);
  });

  it('Polls keep the place of their waiters, even if one is lost and the next is late', async () => {
    const setup = setUp();
    const other = setup.sibling();
    const first = await taken(other);
    const waiter = await queued(setup);
    const behind = await queued(other);
    setup.store.next('acquire', { kind: 'lostCall' });
    setup.clock.nextJitter = 1;
    await setup.clock.advance(1_260);
    expect(setup.store.count('acquire')).toBeGreaterThan(3);
    await setup.clock.advance(1_260);
    await first.release();
    await setup.clock.advance(10);
    expect([waiter.state, behind.state]).toEqual(['fulfilled', 'pending']);
  });

  it('Polls grant for what is left, counted from before the call', async () => {
    const setup = setUp({ claimMs: 900 });
    const first = await taken(setup.sibling());
    const waiter = await queued(setup, { renew: false });
    setup.store.isMute = true;
    await setup.clock.advance(990);
    await first.release();
    setup.store.next('acquire', { kind: 'lateReply', ms: 400 });
    await setup.clock.advance(410);
    // 890 ms of the claim were left when it was sent.
    expect(waiter.value?.remainingMs()).toBeCloseTo(890 * 0.99 - 2 - 400);
  });

  it('Polls grant nothing, and end nothing, if the claim had expired when their reply arrived', async () => {
    const setup = setUp({ claimMs: 300 });
    const first = await taken(setup.sibling());
    const waiter = await queued(setup);
    setup.store.isMute = true;
    await setup.clock.advance(990);
    await first.release();
    setup.store.next('acquire', { kind: 'lateReply', ms: 400 });
    await setup.clock.advance(420);
    expect(waiter.state).toBe('pending');
    await setup.clock.advance(1_000);
    expect(waiter.value?.isHeld()).toBe(true);
  });

  it('Polls whose reply arrives after the wait has ended do nothing more', async () => {
    const setup = setUp();
    await taken(setup.sibling());
    const waiter = await queued(setup, { waitMs: 1_500 });
    setup.store.next('acquire', { kind: 'lateCall', ms: 900 });
    await setup.clock.advance(2_500);
    expect(waiter.error).toBeInstanceOf(LockTimeoutError);
    expect(setup.store.count('acquire')).toBe(3);
    expect(setup.store.count('release')).toBe(1);
  });
});

describe('A grant by message', () => {
  it('A grant by message is used at once, however long its waiter has waited: its end counts from the last poll', async () => {
    const setup = setUp();
    const first = await taken(setup.sibling(), { maxHoldMs: 1_000_000 });
    const waiter = await queued(setup, { waitMs: 1_000_000 });
    await setup.clock.advance(600_100);
    const asks = await asksDuring(setup, async () => {
      await first.release();
      await setup.clock.settle();
    });
    expect(waiter.value?.isHeld()).toBe(true);
    expect(asks).toBe(0);
  });

  it('A grant by message with a short claim is used at once, too', async () => {
    const setup = setUp({ claimMs: 3_000 });
    const first = await taken(setup.sibling());
    const waiter = await queued(setup, { leaseMs: 500 });
    const asks = await asksDuring(setup, async () => {
      await first.release();
      await setup.clock.settle();
    });
    expect(waiter.value?.isHeld()).toBe(true);
    expect(asks).toBe(0);
  });
});

describe('When to try again', () => {
  it('Retry-After counts the turns that ended here, before any poll reports them', async () => {
    const setup = setUp({ pollMs: 60_000 });
    const holder = await taken(setup);
    await queued(setup);
    const last = await queued(setup, { waitMs: 9_000 });
    await setup.clock.advance(2_000);
    await holder.release();
    await setup.clock.advance(7_000);
    // One turn in nine seconds, and nobody before it but the holder.
    expect(last.error).toMatchObject({ retryAfterMs: 9_000 });
  });

  it('Retry-After takes those that are granted together for one turn', async () => {
    const setup = setUp({ pollMs: 60_000 });
    const holder = await taken(setup);
    const acquire = () => lock.acquire('key');
    const together = [outcomeOf(setup.job('trace').in(acquire))];
    await setup.clock.settle();
    const last = await queued(setup, { waitMs: 9_000 });
    together.push(outcomeOf(setup.job('trace').in(acquire)));
    await setup.clock.settle();
    await holder.release();
    await setup.clock.advance(9_000);
    expect(together.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled']);
    expect(last.error).toMatchObject({ retryAfterMs: 9_000 });
  });
});
