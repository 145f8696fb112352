import { currentTrace, getLock, type Hold, lock, runInTrace } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { pathOf } from '../../support/path-of.ts';
import { coreTests, outcomeOf, stoppable, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('A job within a job', () => {
  it('An inner job has its own scope of the same trace and Locks: it re-enters what the outer one holds, and releases its own hold only', async () => {
    const { locks, store, clock, events } = setUp();
    const waiting = events('waiting');
    await runInTrace(
      async () => {
        const [outer, scope] = [await lock.acquire('key'), currentTrace()];
        const inner = await runInTrace(async () => {
          expect(currentTrace()).not.toBe(scope);
          expect(currentTrace()?.traceId).toBe(scope?.traceId);
          const hold = await lock.acquire('key');
          expect(hold.fence).toBe(outer.fence);
          return hold;
        });
        expect(currentTrace()).toBe(scope);
        await clock.settle();
        expect([inner.isHeld(), outer.isHeld()]).toEqual([false, true]);
        expect(await getLock('key').isLocked()).toBe(true);
      },
      { locks },
    );
    await clock.settle();
    expect(waiting).toEqual([]);
    expect(await store.remains()).toEqual([]);
  });

  it('A job runs work that begins only when it is awaited, as the queries of many libraries do, in its own scope', async () => {
    const { locks } = setUp();
    const lazy = {
      // biome-ignore lint/suspicious/noThenProperty: it is what is tested
      then: (resolve: (traceId: string | undefined) => void) => resolve(currentTrace()?.traceId),
    } as PromiseLike<string | undefined>;
    const inner = runInTrace(() => runInTrace(() => lazy, { traceId: 'inner' }), { locks, traceId: 'outer' });
    expect(await inner).toBe('inner');
  });

  it('Nested jobs are branches of each other, enter what the outer ones hold, and leave nothing behind', async () => {
    const { locks, store, clock } = setUp();
    const owners: (string | undefined)[] = [];
    const dive = async (depth: number): Promise<void> => {
      const hold = await lock.acquire('key');
      owners.push(pathOf(hold));
      await lock.acquire(`key-${depth}`);
      if (depth > 0) await runInTrace(() => dive(depth - 1));
    };
    await runInTrace(() => dive(4), { locks, traceId: 'dive' });
    await clock.settle();
    expect(owners.map((owner) => owner?.split('/').length)).toEqual([1, 2, 3, 4, 5]);
    for (const [n, owner] of owners.slice(1).entries()) expect(owner).toMatch(new RegExp(`^${owners[n]}/`));
    expect(await store.remains()).toEqual([]);
  });

  it('An inner job keeps the key for its trace if the outer one releases it first', async () => {
    const setup = setUp();
    const opened = gate();
    let inner: Promise<boolean> | undefined;
    await runInTrace(
      async () => {
        await lock.acquire('key');
        const entered = gate();
        inner = runInTrace(async () => {
          const hold = await lock.acquire('key');
          entered.open();
          await opened;
          return hold.isHeld();
        });
        await entered;
      },
      { locks: setup.locks },
    );
    const stranger = await setup.clock.settled(outcomeOf<Hold>(taken(setup)));
    expect(stranger.state).toBe('pending');
    opened.open();
    expect(await inner).toBe(true);
    await setup.clock.settle();
    expect(stranger.state).toBe('fulfilled');
  });

  it('An inner job with its own trace waits for the outer one, like any other', async () => {
    const { locks, clock } = setUp();
    const outcome = outcomeOf(
      runInTrace(
        async () => {
          await lock.acquire('key');
          await runInTrace(() => lock.acquire('key', { waitMs: 500 }), { traceId: 'stranger' });
        },
        { locks },
      ),
    );
    await clock.advance(500);
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT' });
  });

  it.each([
    ['the same trace', undefined],
    ['a trace of its own', 'own'],
  ])('An inner job for %s stops with the outer one: its waits end, and what it holds stays', async (_, traceId) => {
    const setup = setUp();
    const hold = await taken(setup);
    const work = async () => {
      const kept = await lock.acquire('kept');
      const error: unknown = await lock.acquire('key').catch((refusal: unknown) => refusal);
      return { error, isHeld: kept.isHeld(), reason: currentTrace()?.signal.reason };
    };
    const [controller, outcome] = await stoppable(setup, () => runInTrace(work, { traceId }));
    const reason = new Error('stop');
    controller.abort(reason);
    await setup.clock.settle();
    expect(outcome.value).toMatchObject({ error: { code: 'ERR_LOCK_ABORTED', cause: reason }, isHeld: true, reason });
    await hold.release();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('An inner job that begins after the stop still runs, and does not wait', async () => {
    const setup = setUp();
    const hold = await taken(setup);
    const [, outcome] = await stoppable(setup, async (controller) => {
      await lock.acquire('own');
      controller.abort();
      return runInTrace(() => Promise.allSettled([lock.acquire('own'), lock.acquire('free'), lock.acquire('key')]));
    });
    expect(outcome.value).toMatchObject([
      { status: 'fulfilled' },
      { status: 'fulfilled' },
      { reason: { code: 'ERR_LOCK_ABORTED' } },
    ]);
    await hold.release();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('An inner job with its own signal stops alone', async () => {
    const setup = setUp();
    const hold = await taken(setup);
    const controller = new AbortController();
    const outcome = outcomeOf(
      runInTrace(
        async () => {
          const inner = runInTrace(() => lock.acquire('key'), { signal: controller.signal });
          await expect(inner).rejects.toMatchObject({ code: 'ERR_LOCK_ABORTED' });
          expect(currentTrace()?.signal.aborted).toBe(false);
          await lock.acquire('key');
          return 'waited';
        },
        { locks: setup.locks },
      ),
    );
    await setup.clock.settle();
    controller.abort();
    await setup.clock.settle();
    expect(outcome.state).toBe('pending');
    await hold.release();
    await setup.clock.settle();
    expect(outcome.value).toBe('waited');
  });
});
