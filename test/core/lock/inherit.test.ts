import { type Hold, LockStoreError, lock, resumeHold, runInTrace, traceHeaders } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();

/** A hold that passes from its branch, which has just ended, to a job. */
function leftBy(setup: Setup, job = setup.job()): Promise<Hold> {
  return job.in(() => lock.run('other', () => lock.acquire('key')));
}

describe('A hold that passes to the branch around its own', () => {
  it('can be extended meanwhile, and stays held', async () => {
    const setup = setUp();
    const lost = setup.events('lost');
    const reply = setup.store.gate('transfer');
    const hold = await leftBy(setup);
    const extended = outcomeOf(hold.extend(120_000));
    await setup.clock.settle();
    reply();
    await extended.settled;
    await setup.clock.settle();
    expect([extended.error, lost.length, hold.isHeld()]).toEqual([undefined, 0, true]);
    expect(hold.remainingMs()).toBeGreaterThan(100_000);
  });

  it('does not pass before the store has replied to a call that extends it', async () => {
    const setup = setUp();
    const reply = setup.store.gate('renew');
    const go = gate();
    const left = setup.job().in(async () => {
      let extended: Promise<void> | undefined;
      await lock.run('other', async () => {
        const hold = await lock.acquire('key');
        extended = hold.extend(120_000);
        await go;
      });
      return extended;
    });
    const outcome = outcomeOf(left);
    go.open();
    await setup.clock.settle();
    expect(setup.store.count('transfer')).toBe(0);
    reply();
    await outcome.settled;
    await setup.clock.advance(1_000);
    expect([outcome.error, setup.store.count('transfer')]).toEqual([undefined, 1]);
  });

  it('can be detached meanwhile, and resumed', async () => {
    const setup = setUp();
    const reply = setup.store.gate('transfer');
    const hold = await leftBy(setup);
    const detached = outcomeOf(hold.detach({ leaseMs: 60_000 }));
    await setup.clock.settle();
    reply();
    await detached.settled;
    expect(detached.error).toBeUndefined();
    const resumed = await setup.job().in(() => resumeHold(detached.value as string));
    expect(resumed.isHeld()).toBe(true);
  });

  it('passes once the store takes the call again, and its lease is renewed until then', async () => {
    const setup = setUp();
    const error = new LockStoreError('refused', { outcome: 'not-applied' });
    setup.store.always('transfer', { kind: 'rejected', error });
    const job = setup.job();
    const hold = await leftBy(setup, job);
    await setup.clock.advance(30_000);
    expect(hold.isHeld()).toBe(true);
    setup.store.heal();
    await setup.clock.advance(1_000);
    const nested = outcomeOf(job.in(() => runInTrace(() => lock.run('key', async () => 'inside'))));
    await setup.clock.settle();
    expect([hold.isHeld(), nested.value]).toEqual([true, 'inside']);
  });

  it('lets in at once a branch of the same process that waits for it in the store', async () => {
    const setup = setUp();
    const go = gate();
    const job = setup.job();
    job.in(() => traceHeaders());
    const leaving = job.in(() =>
      lock.run('other', async () => {
        await lock.acquire('key');
        await go;
      }),
    );
    await setup.clock.settle();
    const waiter = outcomeOf(job.in(() => lock.run('key', async () => 'inside')));
    await setup.clock.settle();
    expect(waiter.state).toBe('pending');
    go.open();
    await leaving;
    await setup.clock.settle();
    expect(waiter.value).toBe('inside');
  });
});
