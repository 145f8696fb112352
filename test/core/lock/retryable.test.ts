import { LockStoreError, lock, resumeHold } from '../../../src/core/index.ts';
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

type Scene = [call: string, fail: (setup: Setup) => Promise<LockStoreError>];

describe('`retryable` of a store that fails', () => {
  it.each<Scene>([
    [
      'an acquire',
      (setup) => {
        setup.store.always('acquire', down);
        return errorOf(
          setup,
          setup.job('trace').in(() => lock.acquire('k')),
        );
      },
    ],
    [
      'a resume',
      async (setup) => {
        const hold = await setup.job('first').in(() => lock.acquire('k'));
        const token = await hold.detach({ leaseMs: 60_000 });
        setup.store.always('transfer', down);
        return errorOf(
          setup,
          setup.job('second').in(() => resumeHold(token)),
        );
      },
    ],
  ])('The request may be sent again after %s that failed: nothing was done under the lock', async (_, fail) => {
    const error = await fail(setUp());
    expect([error.retryable, error.headers]).toEqual([true, { 'Retry-After': '1' }]);
    expect(await error.getResponse().json()).toMatchObject({
      detail: 'The lock that the request needs could not be acquired; try again later',
    });
  });

  it.each<Scene>([
    [
      'an extension',
      async (setup) => {
        const hold = await setup.job('trace').in(() => lock.acquire('k', { renew: false, leaseMs: 60_000 }));
        setup.store.always('renew', down);
        return errorOf(setup, hold.extend(60_000));
      },
    ],
    [
      'a release',
      async (setup) => {
        const hold = await setup.job('trace').in(() => lock.acquire('k'));
        setup.store.always('release', down);
        return errorOf(setup, hold.release());
      },
    ],
    [
      'a detach',
      async (setup) => {
        const hold = await setup.job('trace').in(() => lock.acquire('k'));
        setup.store.always('transfer', down);
        return errorOf(setup, hold.detach({ leaseMs: 60_000 }));
      },
    ],
    [
      'a release of several keys',
      async (setup) => {
        const batch = await setup.job('trace').in(() => lock.acquireAll(['k', 'l']));
        setup.store.always('release', down);
        return errorOf(setup, batch.release());
      },
    ],
  ])('A request isn’t sent again after %s that failed: its work may have been done', async (_, fail) => {
    const error = await fail(setUp());
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
