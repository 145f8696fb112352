import { DeadlockError, getLock, LockLostError, lock, runInTrace, traceHeaders } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, crowdOf, type Outcome, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();

/** Runs a job whose trace id nobody else has. */
function inJob<T>({ locks }: Setup, work: () => Promise<T>): Promise<T> {
  return runInTrace(work, { locks });
}

/** Adds to a number as code does that must be alone: it reads, waits, and writes. */
function counter(): { readonly value: number; add(): Promise<void> } {
  let value = 0;
  return {
    get value() {
      return value;
    },
    async add() {
      const read = value;
      await Promise.resolve();
      value = read + 1;
    },
  };
}

describe('Branches of one request', () => {
  it.each([
    ['while nobody holds the key', (work: () => Promise<unknown>) => work()],
    ['within a hold of the request', (work: () => Promise<unknown>) => lock.run('key', work)],
  ])('Calls of `run` at once exclude each other, %s', async (_, around) => {
    const setup = setUp();
    const count = counter();
    const done = inJob(setup, () =>
      around(() => Promise.all(Array.from({ length: 10 }, () => lock.run('key', count.add)))),
    );
    await setup.clock.advance(100);
    await done;
    expect(count.value).toBe(10);
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A second attempt waits for the first one, which was not awaited to its end', async () => {
    const setup = setUp();
    const slow = gate();
    const log: string[] = [];
    const done = inJob(setup, async () => {
      const first = lock.run('key', async () => {
        log.push('first begins');
        await slow;
        log.push('first ends');
      });
      const second = lock.run('key', async () => void log.push('second'));
      await setup.clock.settle();
      slow.open();
      await Promise.all([first, second]);
    });
    await setup.clock.advance(100);
    await done;
    expect(log).toEqual(['first begins', 'first ends', 'second']);
  });

  it('Nested calls enter at any depth, in every way to ask, with one fence and without a store call', async () => {
    const setup = setUp();
    await inJob(setup, () =>
      lock.run('key', async ({ fence }) => {
        const calls = setup.store.count('acquire');
        await lock.run('key', async (inner) => {
          expect(inner.fence).toBe(fence);
          await lock.runAll(['key'], async () => {
            const hold = await lock.acquire('key');
            expect(hold.fence).toBe(fence);
            await lock.run('key', async () => undefined);
          });
        });
        expect(setup.store.count('acquire')).toBe(calls);
      }),
    );
    await setup.clock.settle();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('Calls of `acquire` in one branch enter each other’s holds, and the key is free after all their releases', async () => {
    const setup = setUp();
    await inJob(setup, async () => {
      const [first, second] = await Promise.all([lock.acquire('key'), lock.acquire('key')]);
      await lock.run('key', async () => undefined);
      await first.release();
      expect(second.isHeld()).toBe(true);
      expect(await setup.job('stranger').in(() => lock.tryAcquire('key'))).toBeNull();
      await second.release();
      expect(await setup.store.remains()).toEqual([]);
    });
  });

  it('A hold that its branch has not released belongs to the branch around it, also to the store', async () => {
    const setup = setUp();
    await inJob(setup, async () => {
      let left: { isHeld(): boolean } | undefined;
      await lock.run('other', async () => {
        left = await lock.acquire('key');
        expect(await runInTrace(() => lock.tryAcquire('key'), { locks: setup.locks, traceId: 'stranger' })).toBeNull();
      });
      expect(left?.isHeld()).toBe(true);
      await lock.run('key', async () => undefined);
      await setup.clock.advance(500);
      const { holds } = await setup.locks.inspect('key');
      expect(holds).toHaveLength(1);
      // A job within this one, as a called service does, asks the store.
      await runInTrace(() => lock.run('key', async () => undefined));
      expect(left?.isHeld()).toBe(true);
    });
    await setup.clock.settle();
    expect(await setup.store.remains()).toEqual([]);
  });

  it.each([
    ['its own', false],
    ['that of the branch around it, which it re-entered', true],
  ])('A hold passes to the branch around its own, also if that run has lost its lock: %s', async (_, isNested) => {
    const setup = setUp();
    const job = setup.job();
    if (isNested) await job.in(() => lock.acquire('key'));
    const run = (): Promise<void> =>
      lock.run('key', async () => {
        await lock.acquire('left');
        await setup.locks.forceRelease('key');
        await setup.clock.settle();
      });
    await expect(job.in(run)).rejects.toThrow(LockLostError);
    const nested = outcomeOf(job.in(() => lock.run('left', async () => 'inside')));
    await setup.clock.settle();
    expect([job.in(() => getLock('left').isHeld()), nested.value]).toEqual([true, 'inside']);
  });

  it('Branches exclude each other within a hold that the store has not yet reported as passed on', async () => {
    const setup = setUp();
    const reply = setup.store.gate('transfer');
    const crowd = crowdOf(setup);
    await inJob(setup, async () => {
      await lock.run('other', async () => void (await lock.acquire('key')));
      await lock.run('other', () => Promise.all([lock.run('key', crowd.work), lock.run('key', crowd.work)]));
      reply();
    });
    expect(crowd.most).toBe(1);
  });

  it('A hold that passes to the branch around it has one `granted` and one `released` event', async () => {
    const setup = setUp();
    const events: string[] = [];
    for (const name of ['granted', 'released', 'lost'] as const)
      setup.locks.on(name, ({ key, holdId }) => void (key === 'key' && events.push(`${name} ${holdId}`)));
    await inJob(setup, async () => {
      await lock.run('other', async () => void (await lock.acquire('key')));
      await setup.clock.advance(500);
    });
    await setup.clock.settle();
    const [granted] = events;
    expect(events).toEqual([granted, granted?.replace('granted', 'released')]);
  });

  it('A wait for another branch ends with `waitMs`, and the error names what it waited for', async () => {
    const setup = setUp();
    const go = gate();
    const events: string[] = [];
    for (const name of ['waiting', 'timeout'] as const) setup.locks.on(name, () => void events.push(name));
    const job = inJob(setup, () =>
      lock.run('key', async () => {
        const slow = lock.run('key', () => go);
        const late = await setup.clock.settled(outcomeOf(lock.run('key', async () => undefined, { waitMs: 1_000 })));
        expect(setup.locks.stats().waiters).toBe(1);
        await setup.clock.advance(1_000);
        expect(late.error).toMatchObject({
          code: 'ERR_LOCK_TIMEOUT',
          waitedMs: 1_000,
          message: expect.stringContaining('another branch of this request'),
        });
        go.open();
        await slow;
      }),
    );
    await job;
    expect(events).toEqual(['waiting', 'timeout']);
    expect(setup.locks.stats().waiters).toBe(0);
  });

  it('A try of another branch is refused at once', async () => {
    const setup = setUp();
    await inJob(setup, () =>
      lock.run('key', () =>
        lock.run('key', async () => {
          expect(await lock.tryAcquire('key')).not.toBeNull();
        }),
      ),
    );
    await inJob(setup, async () => {
      const go = gate();
      const first = lock.run('key', () => lock.run('key', () => go));
      await setup.clock.settle();
      expect(await lock.tryAcquire('key')).toBeNull();
      go.open();
      await first;
    });
  });

  it('Branches that wait for each other within one request are a deadlock, and the other one goes on', async () => {
    const setup = setUp();
    const results = await inJob(setup, () =>
      lock.runAll(['a', 'b'], async () => {
        const [first, second] = [gate(), gate()];
        const cross = (one: string, other: string, mine: { open(): void }, theirs: PromiseLike<unknown>) =>
          outcomeOf(
            lock.run(one, async () => {
              mine.open();
              await theirs;
              await lock.run(other, async () => undefined);
            }),
          );
        const both = [cross('a', 'b', first, second), cross('b', 'a', second, first)];
        await setup.clock.advance(100);
        return both;
      }),
    );
    expect(results.map(({ state }) => state).sort()).toEqual(['fulfilled', 'rejected']);
    expect(results.find(({ state }) => state === 'rejected')?.error).toBeInstanceOf(DeadlockError);
  });

  it('Branches wait for each other, too, once one that has ended leaves its hold to one that waits: that is a deadlock', async () => {
    const setup = setUp();
    const [ends, bothEnter, bothWait] = [gate(), gate(), gate()];
    const codes: string[] = [];
    const tried = (key: string): Promise<unknown> =>
      lock.run(key, async () => undefined).catch(({ code }: { code: string }) => codes.push(code));
    const done = inJob(setup, async () => {
      await lock.acquireAll(['a', 'b']);
      const first = lock.run('c', async () => {
        const leaving = lock.run('a', async () => {
          await lock.acquire('a');
          await ends;
        });
        await bothEnter;
        await Promise.all([leaving, tried('b')]);
      });
      const second = lock.run('b', async () => {
        await bothWait;
        await tried('a');
      });
      await Promise.all([first, second]);
    });
    for (const step of [bothEnter, bothWait, ends]) {
      await setup.clock.advance(100);
      step.open();
    }
    await setup.clock.advance(100);
    await done;
    expect(codes).toEqual(['ERR_LOCK_DEADLOCK']);
  });

  it('A wait for another branch fails when the grant beneath is lost', async () => {
    const setup = setUp();
    const go = gate();
    const own = setup.job();
    let waiter: Outcome<unknown> | undefined;
    const outer = outcomeOf(
      own.in(() =>
        lock.run('key', async () => {
          const slow = lock.run('key', () => go).catch(() => {});
          waiter = outcomeOf(lock.run('key', async () => undefined));
          await slow;
        }),
      ),
    );
    await setup.clock.settle();
    expect(waiter?.state).toBe('pending');
    const [hold] = (await setup.locks.inspect('key')).holds;
    expect(await setup.locks.forceRelease('key', { fence: hold?.fence })).toBe(true);
    await setup.clock.settle();
    expect(waiter?.error).toBeInstanceOf(LockLostError);
    go.open();
    await outer.settled;
    expect(outer.error).toBeInstanceOf(LockLostError);
  });

  it('A job within a branch is excluded by another branch of the request, and the other way round', async () => {
    const setup = setUp();
    const count = counter();
    const done = inJob(setup, () =>
      lock.run('key', () =>
        Promise.all([
          lock.run('key', count.add),
          runInTrace(() => lock.run('key', count.add)),
          lock.run('key', count.add),
          runInTrace(() => lock.run('key', count.add)),
        ]),
      ),
    );
    await setup.clock.advance(3_000);
    await done;
    expect(count.value).toBe(4);
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A job within a request of a bare trace id and a later branch of that exclude each other, although the store grants both together', async () => {
    const setup = setUp();
    const count = counter();
    const stranger = await setup.job().in(() => lock.acquire('key'));
    const job = setup.job('bare');
    const parts = [
      job.in(() => runInTrace(() => lock.run('key', count.add))),
      job.in(() => lock.run('key', count.add, { priority: 1 })),
    ];
    await setup.clock.settle();
    await stranger.release();
    await setup.clock.settle();
    await Promise.all(parts);
    expect(count.value).toBe(2);
  });

  it('The headers for called services name the branch, and each of two branches has its own path', async () => {
    const setup = setUp();
    await inJob(setup, async () => {
      const root = traceHeaders();
      expect(root['X-Trace-Branch']).toBe(root['X-Trace-Id']);
      const paths = await Promise.all(
        ['a', 'b'].map((key) => lock.run(key, async () => traceHeaders()['X-Trace-Branch'])),
      );
      for (const path of paths) expect(path?.startsWith(`${root['X-Trace-Id']}/`)).toBe(true);
      expect(new Set(paths).size).toBe(2);
    });
  });
});
