import { createLocks, LockStoreError, lock, MemoryStore, runInTrace } from 'reenlock';
import type { HoldRequest, ReleaseReply, ReleaseTerms } from '../../src/core/store/store.ts';

/** Fails releases until it is mended. */
class BrokenStore extends MemoryStore {
  isBroken = true;

  override async release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    if (this.isBroken) throw new LockStoreError('The store is down', { outcome: 'not-applied', cause: 'test' });
    return super.release(request, terms);
  }
}

describe('a hold whose lease was extended', () => {
  it('is given back when the store comes back, though its first lease is long over', async () => {
    const store = new BrokenStore();
    const locks = createLocks({ store, leaseMs: 20, storeTimeoutMs: 20 });
    await runInTrace(
      async () => {
        const hold = await lock.acquire('key', { renew: false });
        await hold.extend(60_000);
        await expect(hold.release()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
      },
      { locks },
    );
    await new Promise((resolve) => setTimeout(resolve, 100));
    store.isBroken = false;
    const isFree = async (): Promise<boolean> => (await store.inspect('key')).holds.length === 0;
    while (!(await isFree())) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await isFree()).toBe(true);
    await locks.close();
  });
});
