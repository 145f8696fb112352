import { LockStoreError, LocksClosedError, type LocksOptions } from '../../../src/core/index.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;

describe('locks.ping', () => {
  it('locks.ping asks the store once, reports that it replied and how long it took, and leaves nothing there', async () => {
    const setup = setUp();
    setup.store.next('inspect', { kind: 'lateReply', ms: 30 });
    const outcome = outcomeOf(setup.locks.ping());
    await setup.clock.advance(30);
    expect(outcome.value).toEqual({ ok: true, latencyMs: 30 });
    expect(setup.store.calls).toHaveLength(1);
    expect(await setup.locks.list()).toEqual({ locks: [], unreadable: [], cursor: undefined });
  });

  it('locks.ping resolves with the error if the store fails, and emits a `storeError` event', async () => {
    const setup = setUp();
    const seen = setup.events('storeError');
    setup.store.next('inspect', down);
    const result = await setup.locks.ping();
    expect(result).toEqual({ ok: false, latencyMs: 0, error: expect.any(LockStoreError) });
    expect(result).toMatchObject({ error: { cause: down.error } });
    expect(seen).toMatchObject([{ operation: 'ping' }]);
  });

  it.each<[string, LocksOptions, { timeoutMs: number } | undefined, number]>([
    ['`timeoutMs`', {}, { timeoutMs: 500 }, 500],
    ['`storeTimeoutMs`, without', { storeTimeoutMs: 300 }, undefined, 300],
  ])('locks.ping resolves after %s, if the store does not reply', async (_, options, pingOptions, ms) => {
    const setup = setUp(options);
    setup.store.next('inspect', { kind: 'lostCall' });
    const outcome = outcomeOf(setup.locks.ping(pingOptions));
    await setup.clock.advance(ms - 1);
    expect(outcome).not.toHaveProperty('value');
    await setup.clock.advance(1);
    expect(outcome.value).toEqual({ ok: false, latencyMs: ms, error: expect.any(LockStoreError) });
  });

  it('locks.ping reports that a `Locks` that is closing is not ready, and does not ask the store', async () => {
    const setup = setUp();
    await setup.locks.close();
    const calls = setup.store.calls.length;
    expect(await setup.locks.ping()).toEqual({ ok: false, latencyMs: 0, error: expect.any(LocksClosedError) });
    expect(setup.store.calls).toHaveLength(calls);
  });

  it('locks.ping rejects for bad options', async () => {
    await expect(setUp().locks.ping({ timeoutMs: 0 })).rejects.toThrow('Expected `timeoutMs` to be a whole number');
  });
});
