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

describe('If the store can’t pass on holds, one that its branch has left', () => {
  const withoutTransfer = (): Setup => {
    const setup = setUp();
    Object.assign(setup.store, { capabilities: { ...setup.store.capabilities, transfer: false } });
    return setup;
  };

  it.each([
    ['', () => {}],
    [', although it has called services', () => void traceHeaders()],
  ])('is entered by nested calls of its request, one branch after the other%s', async (_, call) => {
    const setup = withoutTransfer();
    const job = setup.job();
    await leftBy(setup, job);
    job.in(call);
    let [inside, most] = [0, 0];
    const work = async (): Promise<void> => {
      inside += 1;
      most = Math.max(most, inside);
      await setup.clock.advance(100);
      inside -= 1;
    };
    await job.in(() => Promise.all([lock.run('key', work), lock.run('key', work), lock.acquire('key')]));
    expect(most).toBe(1);
  });

  it('is not entered by a branch that waits for another one in it, once the branch around has released it', async () => {
    const setup = withoutTransfer();
    const job = setup.job();
    const hold = await leftBy(setup, job);
    const work = gate();
    const first = job.in(() => lock.run('key', () => work));
    const second = outcomeOf(job.in(() => lock.run('key', async () => 'inside')));
    await setup.clock.settle();
    await hold.release();
    await setup.clock.settle();
    expect(second.state).toBe('pending');
    work.open();
    await first;
    await setup.clock.settle();
    expect(second.value).toBe('inside');
  });

  it('is not entered if its branch has called a service, which may still be in the lock', async () => {
    const setup = withoutTransfer();
    const job = setup.job();
    await job.in(() =>
      lock.run('other', async () => {
        await lock.acquire('key');
        await lock.run('third', async () => traceHeaders());
      }),
    );
    expect(await job.in(() => lock.tryAcquire('key'))).toBeNull();
  });
});
