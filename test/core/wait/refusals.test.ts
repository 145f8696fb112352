import { inspect } from 'node:util';
import { type LockTimeoutError, lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

/** The errors of acquires that wait for a second, by jobs of their own. */
async function timeouts(setup: Setup, count = 1): Promise<LockTimeoutError[]> {
  const outcomes = [];
  for (let n = 0; n < count; n++) outcomes.push(await queued(setup, { waitMs: 1_000 }));
  await setup.clock.advance(1_000);
  await setup.clock.settle();
  return outcomes.map(({ error }) => error as LockTimeoutError);
}

describe('An acquire that times out', () => {
  it('The error and the event of a timeout have the trace, the branch and the instance that hold the key, for how long, and how many waited', async () => {
    const setup = setUp();
    const hold = await taken(setup.sibling({ instance: 'orders:1' }));
    const events = setup.events('timeout');
    await setup.clock.advance(500);
    const [error] = await timeouts(setup, 2);
    const holder = { traceId: hold.traceId, branch: '', instance: 'orders:1', heldMs: 1_500, waiters: 2 };
    expect([error?.holder, events[0]?.holder]).toMatchObject([holder, holder]);
  });

  it('The error of a batch has the holder of its key', async () => {
    const setup = setUp();
    const { traceId } = await taken(setup);
    const batch = outcomeOf(setup.job().in(() => lock.acquireAll(['key', 'other'], { waitMs: 1_000 })));
    await setup.clock.advance(1_000);
    expect(batch.error).toMatchObject({ holder: { traceId, heldMs: 1_000 } });
  });

  it('The holder is shown as a whole by util.inspect, to loggers without its trace, and neither by the message nor by JSON', async () => {
    const setup = setUp();
    const { traceId } = await taken(setup);
    const [error] = await timeouts(setup);
    const instance = setup.locks.settings.instance;
    for (const secret of [traceId, instance]) {
      expect(inspect(error)).toContain(secret);
      for (const shown of [error?.message, error?.stack, JSON.stringify(error)]) expect(shown).not.toContain(secret);
    }
    expect(JSON.parse(JSON.stringify({ ...error })).holder).toEqual({ instance, heldMs: 1_000, waiters: 1 });
  });

  it('An acquire times out without the holder if the store fails just then, and no event is emitted', async () => {
    const setup = setUp();
    await taken(setup);
    setup.store.always('inspect', { kind: 'rejected', error: new Error('down') });
    const failures = setup.events('storeError');
    const [error] = await timeouts(setup);
    expect(error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', holder: undefined });
    expect(failures).toEqual([]);
  });

  it('A store that does not reply delays the timeout by 50 ms at most', async () => {
    const setup = setUp();
    await taken(setup);
    setup.store.always('inspect', { kind: 'lostCall' });
    const waiter = await queued(setup, { waitMs: 1_000 });
    await setup.clock.advance(1_049);
    expect(waiter.state).toBe('pending');
    await setup.clock.advance(1);
    expect(waiter.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', waitedMs: 1_000, holder: undefined });
  });

  it('Acquires that time out within a second look once for all of them', async () => {
    const setup = setUp();
    await taken(setup);
    await queued(setup, { waitMs: 60_000 });
    const errors = await timeouts(setup, 5);
    expect(errors.map(({ holder }) => holder?.waiters)).toEqual([6, 6, 6, 6, 6]);
    expect(setup.store.count('inspect')).toBe(1);
    const [later] = await timeouts(setup);
    expect([later?.holder?.heldMs, setup.store.count('inspect')]).toEqual([2_000, 2]);
  });

  it('Nobody looks for an acquire that is granted, refused at once, or aborted', async () => {
    const setup = setUp();
    const hold = await taken(setup);
    const waiter = await queued(setup);
    const busy = await queued(setup, { waitMs: 0 });
    await setup.job().in(() => lock.tryAcquire('key'));
    const controller = new AbortController();
    await queued(setup, { signal: controller.signal });
    controller.abort();
    await hold.release();
    await setup.clock.settle();
    expect([waiter.state, busy.error]).toMatchObject(['fulfilled', { code: 'ERR_LOCK_TIMEOUT', holder: undefined }]);
    expect(setup.store.count('inspect')).toBe(0);
  });

  it('A Locks that closes meanwhile waits until the error was delivered', async () => {
    const setup = setUp();
    await taken(setup);
    const open = setup.store.gate('inspect');
    const waiter = await queued(setup, { waitMs: 1_000 });
    await setup.clock.advance(1_000);
    const closing = await setup.clock.settled(outcomeOf(setup.locks.close({ drainMs: 0 })));
    expect([waiter.state, closing.state]).toEqual(['pending', 'pending']);
    open();
    await setup.clock.settle();
    expect(waiter.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT' });
  });
});
