import { type LockTimeoutError, lock, runInTrace } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, type Outcome, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();

/** How long the store may take to reply, by default. */
const storeTimeoutMs = 2_000;

interface Wait {
  /** The acquire that waits, first for the other branch. */
  readonly second: Outcome<string>;
  /** Ends the other branch, which has the key: after that the store must be asked. */
  endFirst(): Promise<void>;
}

/** Two runs in one request. To the store, both belong to one owner: the second waits in its process for the first one. */
async function waitForBranch(setup: Setup, waitMs: number): Promise<Wait> {
  const work = gate();
  const job = setup.job('bare');
  const first = job.in(() => lock.run('key', () => work, { waitMs: 0 }));
  await setup.clock.settle();
  const second = outcomeOf(job.in(() => lock.run('key', async () => 'inside', { waitMs })));
  await setup.clock.settle();
  return {
    second,
    endFirst: async () => {
      work.open();
      await first;
      await setup.clock.settle();
    },
  };
}

describe('An acquire that asks the store after a wait for another branch', () => {
  it.each([
    ['shorter than', 500],
    ['as long as', storeTimeoutMs],
    ['longer than', 5_000],
  ])('times out at the end of a `waitMs` %s `storeTimeoutMs`, even if the store has not replied', async (_, waitMs) => {
    const setup = setUp();
    const { second, endFirst } = await waitForBranch(setup, waitMs);
    const timeouts = setup.events('timeout');
    const storeErrors = setup.events('storeError');
    await setup.clock.advance(waitMs - 5);
    const open = setup.store.gate('acquire');
    await endFirst();
    await setup.clock.advance(4);
    expect(second.state).toBe('pending');
    await setup.clock.advance(1);
    expect(second.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', waitedMs: waitMs });
    expect([timeouts.length, storeErrors.length]).toEqual([1, 0]);
    open();
    await setup.clock.settle();
    // What the store had granted meanwhile.
    expect((await setup.store.inspect('key')).holds).toEqual([]);
  });

  it('leaves nothing behind if its call reaches the store after its time', async () => {
    const setup = setUp();
    const { second, endFirst } = await waitForBranch(setup, 5_000);
    await setup.clock.advance(4_995);
    setup.store.next('acquire', { kind: 'lateCall', ms: 50 });
    await endFirst();
    await setup.clock.advance(100);
    expect((second.error as LockTimeoutError).code).toBe('ERR_LOCK_TIMEOUT');
    expect((await setup.store.inspect('key')).holds).toEqual([]);
  });

  it('gives the store as much time to reply as an acquire that did not wait', async () => {
    const setup = setUp();
    const { second, endFirst } = await waitForBranch(setup, 15_000);
    await setup.clock.advance(5_000);
    setup.store.next('acquire', { kind: 'lateReply', ms: storeTimeoutMs - 1 });
    await endFirst();
    await setup.clock.advance(storeTimeoutMs - 1);
    expect(second.value).toBe('inside');
  });

  it('fails with the error of the store if that does not reply in its time', async () => {
    const setup = setUp();
    const { second, endFirst } = await waitForBranch(setup, 15_000);
    await setup.clock.advance(5_000);
    setup.store.next('acquire', { kind: 'lostReply' });
    await endFirst();
    await setup.clock.advance(storeTimeoutMs - 1);
    expect(second.state).toBe('pending');
    await setup.clock.advance(1);
    expect(second.error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
  });

  it('times out at the end of its time if its process has not subscribed by then, and nothing is sent', async () => {
    const setup = setUp();
    setup.store.next('subscribe', { kind: 'rejected', error: new Error('NOPERM') }, { kind: 'lostCall' });
    const { second, endFirst } = await waitForBranch(setup, 5_000);
    await setup.clock.advance(4_995);
    const acquires = setup.store.count('acquire');
    await endFirst();
    expect(setup.store.count('subscribe')).toBe(2);
    await setup.clock.advance(5);
    expect(second.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', waitedMs: 5_000 });
    await setup.clock.advance(storeTimeoutMs);
    expect(setup.store.count('acquire')).toBe(acquires);
  });

  it('times out at the end of its time if the store granted it together with that branch, and it asks again', async () => {
    const setup = setUp();
    const stranger = await setup.job().in(() => lock.acquire('key'));
    const [work, job, waitMs] = [gate(), setup.job('bare'), 5_000];
    const first = job.in(() => lock.run('key', () => work, { priority: 1 }));
    const within = outcomeOf(job.in(() => runInTrace(() => lock.run('key', async () => 'inside', { waitMs }))));
    await setup.clock.settle();
    await stranger.release();
    await setup.clock.advance(4_995);
    const acquires = setup.store.count('acquire');
    setup.store.next('acquire', { kind: 'lateReply', ms: 100 });
    work.open();
    await first;
    await setup.clock.settle();
    expect([within.state, setup.store.count('acquire') - acquires]).toEqual(['pending', 1]);
    await setup.clock.advance(5);
    expect(within.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', waitedMs: 5_000 });
    await setup.clock.settle();
    expect((await setup.store.inspect('key')).holds).toEqual([]);
  });
});
