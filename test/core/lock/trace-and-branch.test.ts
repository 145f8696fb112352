import { currentTrace, lock, runInTrace } from '../../../src/core/index.ts';
import { pathOf } from '../../support/path-of.ts';
import { coreTests } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('The trace and the branch of a hold', () => {
  it.each(['trace', 'request', false] as const)(
    'A hold, its event and inspect name the same trace and branch with `reentrant: %p`',
    async (reentrant) => {
      const { locks, events } = setUp();
      const granted = events('granted');
      let trace = '';
      const seen = await runInTrace(
        () =>
          lock.run('outer', () =>
            lock.run(
              'key',
              async (hold) => {
                trace = String(currentTrace()?.traceId);
                return [hold, ...(await locks.inspect('key')).holds].map((each) => pathOf(each));
              },
              { reentrant },
            ),
          ),
        { locks },
      );
      expect(seen).toEqual([`${trace}/1/2`, `${trace}/1/2`]);
      expect(granted.map((event) => pathOf(event))).toEqual([`${trace}/1`, `${trace}/1/2`]);
    },
  );

  it.each(['request', false] as const)(
    'The hold of a nested job is listed under the path of the job with `reentrant: %p`',
    async (reentrant) => {
      const { job, locks } = setUp();
      const roots: (string | undefined)[] = [];
      const holds: string[] = [];
      await job('trace').in(() =>
        runInTrace(async () => {
          roots.push(currentTrace()?.branch);
          await lock.acquire('key', { reentrant });
          for (const each of (await locks.inspect('key')).holds) holds.push(pathOf(each));
        }),
      );
      expect(roots).toEqual([expect.stringMatching(/^\w+$/)]);
      expect(holds).toEqual([`trace/${roots[0]}`]);
    },
  );

  it('A waiter that is not reentrant is listed under its trace', async () => {
    const { job, locks, clock } = setUp();
    const hold = await job('one').in(() => lock.acquire('key'));
    const waiting = job('two').in(() => lock.run('key', () => {}, { reentrant: false }));
    await clock.settle();
    expect((await locks.inspect('key')).waiters).toMatchObject([{ traceId: 'two', branch: '' }]);
    await hold.release();
    await waiting;
  });

  it('A hold that its branch leaves behind is of the branch around it', async () => {
    const { locks, clock } = setUp();
    const branches = await runInTrace(
      async () => {
        const [hold, before] = await lock.run('outer', async () => {
          const inner = await lock.acquire('key');
          return [inner, inner.branch] as const;
        });
        await clock.settle();
        return [before, hold.branch];
      },
      { locks },
    );
    expect(branches).toEqual(['1', '']);
  });

  it('A detached hold has no trace in inspect, and an empty branch', async () => {
    const { job, locks } = setUp();
    const hold = await job('one').in(() => lock.acquire('key'));
    await hold.detach({ leaseMs: 5_000 });
    expect((await locks.inspect('key')).holds).toMatchObject([{ traceId: undefined, branch: '', isDetached: true }]);
  });
});
