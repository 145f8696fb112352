import { LockStoreError, lock, MemoryStore, runInTrace } from 'reenlock';
import type { HoldRequest, ReleaseReply, ReleaseTerms } from '../../../src/core/model/store.ts';
import { buildLocks } from '../../../src/core/runtime/locks.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';

/** Fails releases until it is mended. */
class BrokenStore extends MemoryStore {
  isBroken = true;

  override async release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    if (this.isBroken) throw new LockStoreError('The store is down', { outcome: 'not-applied', cause: 'test' });
    return super.release(request, terms);
  }
}

describe('A hold whose lease was extended', () => {
  it('An extended hold is released when the store returns, even if its first lease is long over', async () => {
    const clock = new ManualClock();
    const store = new BrokenStore({ clock });
    const locks = buildLocks({ store, leaseMs: 100, storeTimeoutMs: 100 }, clock);
    await runInTrace(
      async () => {
        const hold = await lock.acquire('key', { renew: false });
        await hold.extend(60_000);
        const released = expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
        await clock.advance(1_000);
        await released;
      },
      { locks },
    );
    expect((await store.inspect('key')).holds).toHaveLength(1);
    store.isBroken = false;
    await clock.advance(10_000);
    expect((await store.inspect('key')).holds).toEqual([]);
    await locks.close();
  });

  it('An extended hold is also released then if it was lost because the store did not reply to the extension', async () => {
    const clock = new ManualClock();
    const store = new BrokenStore({ clock });
    const renew = store.renew.bind(store);
    store.renew = (request, terms) => {
      void renew(request, terms);
      return new Promise(() => {});
    };
    const locks = buildLocks({ store, leaseMs: 100, storeTimeoutMs: 100 }, clock);
    await runInTrace(
      async () => {
        const hold = await lock.acquire('key', { renew: false });
        const extended = expect(hold.extend(60_000)).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
        await clock.advance(1_000);
        await extended;
        expect(hold.signal.aborted).toBe(true);
      },
      { locks },
    ).catch(() => {});
    store.isBroken = false;
    await clock.advance(10_000);
    expect((await store.inspect('key')).holds).toEqual([]);
    await locks.close();
  });
});
