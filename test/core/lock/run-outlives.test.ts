import { type Hold, lock } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();

const tryNow = (setup: Setup, key: string): Promise<Hold | null> => setup.job().in(() => lock.tryAcquire(key));

describe('lock.run in a scope that ends before its routine', () => {
  it('lock.run keeps the lock until the routine has settled, and releases it then', async () => {
    const setup = setUp();
    const work = gate();
    const job = setup.job();
    const running = job.in(() => lock.run('key', (hold) => work.then(() => hold.isHeld())));
    await setup.clock.settle();
    void job.end();
    expect(await tryNow(setup, 'key')).toBeNull();
    work.open();
    expect(await running).toBe(true);
    expect(await tryNow(setup, 'key')).not.toBeNull();
  });

  it('lock.run keeps a lock that was taken by work which waitUntil postpones, and one alongside it that settles earlier', async () => {
    const setup = setUp();
    const [first, second] = [gate(), gate()];
    const job = setup.job();
    const [one, two] = await job.in(() => Promise.all([lock.acquire('one'), lock.acquire('two')]));
    one.waitUntil(first);
    const run = outcomeOf(job.in(() => lock.run('three', () => second)));
    two.waitUntil(run.settled);
    await setup.clock.settle();
    void job.end();
    first.open();
    await setup.clock.settle();
    expect(await tryNow(setup, 'one')).not.toBeNull();
    expect([await tryNow(setup, 'two'), await tryNow(setup, 'three')]).toEqual([null, null]);
    second.open();
    await setup.clock.settle();
    expect(await tryNow(setup, 'two')).not.toBeNull();
    expect(await tryNow(setup, 'three')).not.toBeNull();
  });
});
