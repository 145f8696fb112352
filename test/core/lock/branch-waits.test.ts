import {
  DeadlockError,
  type LockLostError,
  LockTimeoutError,
  lock,
  resumeHold,
  runInTrace,
} from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';
import { recordWarnings } from '../../support/warnings.ts';

const warnings = recordWarnings();
const setUp = coreTests();

describe('A wait for another branch of the request', () => {
  it('ends when the last of those branches leaves, even if it is a branch around the job that waits', async () => {
    const setup = setUp();
    const [around, inside] = [gate(), gate()];
    const log: string[] = [];
    const job = async (): Promise<void> => {
      await lock.acquire('key', { mode: 'read' });
      const reader = lock.run('key', () => inside, { mode: 'read' });
      const writer = lock.run('key', async () => void log.push('writer'));
      await Promise.all([reader, writer]);
    };
    const outcome = outcomeOf(
      setup
        .job()
        .in(() =>
          lock.run('key', () => Promise.all([lock.run('key', () => around, { mode: 'read' }), runInTrace(job)])),
        ),
    );
    await setup.clock.settle();
    inside.open();
    await setup.clock.settle();
    expect(log).toEqual([]);
    around.open();
    await setup.clock.settle();
    expect(log).toEqual(['writer']);
    expect(outcome.state).toBe('fulfilled');
  });

  it('ends when that branch loses its lock, even if no branch around both holds the key', async () => {
    const setup = setUp();
    const lost = setup.events('lost');
    const work = gate();
    const job = setup.job('bare');
    const first = outcomeOf(job.in(() => lock.run('key', () => work)));
    await setup.clock.settle();
    const second = outcomeOf(job.in(() => lock.run('key', async () => 'inside')));
    await setup.clock.settle();
    expect(second.state).toBe('pending');
    await setup.locks.forceRelease('key');
    await setup.clock.settle();
    expect([lost.length, second.value]).toEqual([1, 'inside']);
    work.open();
    await first.settled;
    expect((first.error as LockLostError).code).toBe('ERR_LOCK_LOST');
  });

  it('A wait for a branch does not count as code that notices a loss: if no other does, there is a warning', async () => {
    const setup = setUp();
    const job = setup.job();
    await job.in(() => lock.acquire('key'));
    const work = gate();
    const first = outcomeOf(job.in(() => lock.run('other', () => lock.acquire('key').then(() => work))));
    await setup.clock.settle();
    const second = outcomeOf(job.in(() => lock.run('key', async () => undefined, { waitMs: 1_000 })));
    await setup.clock.advance(1_000);
    expect(second.state).toBe('rejected');
    await setup.locks.forceRelease('key');
    await setup.clock.settle();
    work.open();
    await first.settled;
    await job.end();
    expect(warnings().map(({ code }) => code)).toEqual(['LOCK_LOST']);
  });

  it('A wait that begins after a grant beside that branch is looked at at once: if that branch waits for it, that is a deadlock', async () => {
    const setup = setUp();
    const [waiting, deadlocks] = [setup.events('waiting'), setup.events('deadlock')];
    const stranger = await setup
      .sibling()
      .job()
      .in(() => lock.acquire('key'));
    const job = setup.job('bare');
    const within = outcomeOf(
      job.in(() => runInTrace(() => lock.run('other', () => lock.run('key', async () => 'within')))),
    );
    await setup.clock.settle();
    const branch = outcomeOf(
      job.in(() => lock.run('key', () => lock.run('other', async () => 'branch'), { priority: 1 })),
    );
    await setup.clock.settle();
    // The store grants the key to both; the job learns it late.
    const late = waiting.find(({ key }) => key === 'key')?.holdId;
    setup.store.onMessage = (message) => {
      setup.store.isMute = message.kind === 'granted' && message.grant.holdId === late;
    };
    await stranger.release();
    await setup.clock.settle();
    expect([waiting.length, deadlocks.length]).toEqual([3, 0]);
    const asked = (): boolean => setup.store.calls.some((call) => call.operation === 'release' && call.holdId === late);
    while (!asked()) await setup.clock.advance(1);
    expect(deadlocks).toMatchObject([{ key: 'key', cycle: [{ traceId: 'bare', key: 'key' }] }]);
    await setup.clock.settle();
    expect([within.error, branch.value]).toEqual([expect.any(DeadlockError), 'branch']);
  });

  it('A wait asks the store after that branch has released: a stranger that waited longer is first', async () => {
    const setup = setUp();
    const entered = setup.events('entered');
    const log: string[] = [];
    const work = gate();
    const job = setup.job('bare');
    const first = job.in(() => lock.run('key', () => work));
    await setup.clock.settle();
    const second = job.in(() => lock.run('key', async () => void log.push('second')));
    const stranger = setup.job().in(() => lock.run('key', async () => void log.push('stranger')));
    await setup.clock.settle();
    work.open();
    await Promise.all([first, second, stranger]);
    expect(log).toEqual(['stranger', 'second']);
    // Two runs of one job that take turns do not overlap.
    expect(entered).toEqual([]);
    expect(warnings()).toEqual([]);
  });

  it('goes on in the store if that branch detaches its hold', async () => {
    const setup = setUp();
    const job = setup.job('bare');
    const token = job.in(() =>
      lock.run('key', async (hold) => {
        const waiter = outcomeOf(job.in(() => lock.run('key', async () => undefined, { waitMs: 1_000 })));
        await setup.clock.settle();
        const detached = await hold.detach({ leaseMs: 60_000 });
        await setup.clock.advance(1_000);
        expect(waiter.error).toBeInstanceOf(LockTimeoutError);
        return detached;
      }),
    );
    await expect(token).resolves.toEqual(expect.any(String));
    expect((await setup.job().in(async () => resumeHold(await token))).isHeld()).toBe(true);
  });
});
