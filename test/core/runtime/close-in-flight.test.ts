import { createLocks, lock, MemoryStore, runInTrace } from 'reenlock';
import type { AcquireReply, AcquireTerms, HoldRequest } from '../../../src/core/model/store.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

/** Answers acquires when it is told to. */
class SlowStore extends MemoryStore {
  readonly mayAnswer: Gate = gate();

  override async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const reply = await super.acquire(request, terms);
    await this.mayAnswer;
    return reply;
  }
}

describe('Closing while an acquire is on its way', () => {
  it('close waits for the reply of an acquire, and releases what it was granted', async () => {
    const store = new SlowStore();
    const locks = createLocks({ store });
    const refused = runInTrace(() => lock.tryAcquire('key'), { locks }).catch((error: { code: string }) => error.code);
    let isClosed = false;
    const closed = locks.close().then(() => {
      isClosed = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(isClosed).toBe(false);
    store.mayAnswer.open();
    await closed;
    expect((await store.inspect('key')).holds).toEqual([]);
    expect(await refused).toBe('ERR_LOCK_CLOSED');
  });

  it('close settles an acquire even if the store never replies', async () => {
    const locks = createLocks({ store: new SlowStore(), storeTimeoutMs: 100 });
    const refused = runInTrace(() => lock.tryAcquire('key'), { locks }).catch((error: { code: string }) => error.code);
    await locks.close();
    expect(await refused).toBe('ERR_LOCK_STORE');
  });
});
