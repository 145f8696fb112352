import { type BatchHold, type Hold, LockStoreError, lock, resumeHold } from '../../../src/core/index.ts';
import type { StoreOperation } from '../../support/stores/fake-store.ts';
import { coreTests, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;

/** The error of a call, once all repetitions have failed. */
async function errorOf({ clock }: Setup, call: Promise<unknown>): Promise<LockStoreError> {
  const outcome = outcomeOf(call);
  await clock.advance(20_000);
  expect(outcome.error).toBeInstanceOf(LockStoreError);
  return outcome.error as LockStoreError;
}

describe('`retryable` of a store that fails', () => {
  it.each<[call: string, StoreOperation, (token: string) => Promise<unknown>]>([
    ['an acquire', 'acquire', () => lock.acquire('other')],
    ['a resume', 'transfer', (token) => resumeHold(token)],
  ])(
    'The request may be sent again after %s that failed: nothing was done under the lock',
    async (_, operation, call) => {
      const setup = setUp();
      const token = await setup.job('first').in(() => lock.run('k', (hold) => hold.detach({ leaseMs: 60_000 })));
      setup.store.always(operation, down);
      const error = await errorOf(
        setup,
        setup.job('second').in(() => call(token)),
      );
      expect([error.retryable, error.headers]).toEqual([true, { 'Retry-After': '1' }]);
      expect(await error.getResponse().json()).toMatchObject({
        detail: 'The lock that the request needs could not be acquired; try again later',
      });
    },
  );

  it.each<[call: string, StoreOperation, (hold: Hold, batch: BatchHold) => Promise<unknown>]>([
    ['an extension', 'renew', (hold) => hold.extend(60_000)],
    ['a release', 'release', (hold) => hold.release()],
    ['a detach', 'transfer', (hold) => hold.detach({ leaseMs: 60_000 })],
    ['a release of several keys', 'release', (_, batch) => batch.release()],
  ])('A request isn’t sent again after %s that failed: its work may have been done', async (_, operation, call) => {
    const setup = setUp();
    const { in: inJob } = setup.job('trace');
    const hold = await inJob(() => lock.acquire('k', { renew: false, leaseMs: 60_000 }));
    const batch = await inJob(() => lock.acquireAll(['l', 'm']));
    setup.store.always(operation, down);
    const error = await errorOf(setup, call(hold, batch));
    expect([error.code, error.status, error.retryable, error.headers]).toEqual(['ERR_LOCK_STORE', 503, false, {}]);
    expect(await error.getResponse().json()).toMatchObject({
      detail: 'The lock of the request failed during its work, which may have been done in part',
    });
  });
});

describe('`retryable` of a nested call that got no lock', () => {
  it.each<[string, (setup: Setup) => Promise<unknown>]>([
    ['a busy key', () => lock.run('busy', () => undefined, { waitMs: 0 })],
    [
      'a store that fails',
      (setup) => {
        setup.store.next('acquire', down);
        return lock.run('free', () => undefined);
      },
    ],
  ])(
    'A nested call may be repeated after %s: its error says nothing about the lock around it, which is still held',
    async (_, nested) => {
      const setup = setUp();
      await setup.job().in(() => lock.acquire('busy'));
      const outer = await setup.job('trace').in(() =>
        lock.run('outer', async (hold) => {
          const error = await nested(setup).catch((reason: unknown) => reason);
          return { error, isHeld: hold.isHeld() };
        }),
      );
      expect(outer.error).toMatchObject({ retryable: true, headers: { 'Retry-After': expect.any(String) } });
      expect(outer.isHeld).toBe(true);
    },
  );
});
