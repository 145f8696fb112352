import { type LocksOptions, lock } from '../../../src/core/index.ts';
import { pathOf } from '../../support/path-of.ts';
import type { StoreCall } from '../../support/stores/fake-store.ts';
import { coreTests, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

function times(calls: readonly StoreCall[], operation: StoreCall['operation'], sinceMs: number): number[] {
  return calls.filter((call) => call.operation === operation).map((call) => Math.round(call.atMs - sinceMs));
}

describe('A claim', () => {
  const setUpLast = (options: LocksOptions): ReturnType<typeof setUp> => {
    const setup = setUp(options);
    setup.clock.nextJitter = 1;
    return setup;
  };
  const handOver = async (setup: ReturnType<typeof setUp>, options: { leaseMs: number; renew?: boolean }) => {
    const first = await setup.job().in(() => lock.acquire('key'));
    const second = setup.job().in(() => lock.acquire('key', options));
    await setup.clock.settle();
    await first.release();
    return second;
  };

  it('A claim in the reply to a release is delivered before the release resolves', async () => {
    const setup = setUp();
    const told: string[] = [];
    const turn = async (name: string) => {
      const hold = await lock.acquire('key');
      told.push(name);
      await hold.release();
      told.push(`${name} released`);
    };
    await Promise.all(['first', 'second'].map((name) => setup.job().in(() => turn(name))));
    expect(told).toEqual(['first', 'second', 'first released', 'second released']);
  });

  it('A claim is renewed a third of it after the grant at the latest, and becomes the full lease', async () => {
    const setup = setUpLast({ claimMs: 600 });
    const { store, clock } = setup;
    const hold = await handOver(setup, { leaseMs: 30_000 });
    const startMs = clock.now().monoMs;
    expect(hold.remainingMs()).toBeLessThanOrEqual(600);
    await clock.advance(250);
    expect(times(store.calls, 'renew', startMs)).toEqual([198]);
    expect(hold.remainingMs()).toBeGreaterThan(29_000);
  });

  it('Claims that are handed over at once are renewed one after another, between a sixth and a third of them', async () => {
    const setup = setUp({ claimMs: 6_000 });
    const { store, clock } = setup;
    const first = await taken(setup);
    const readers = [0, 0.25, 0.5, 0.75, 1].map(() => setup.job().in(() => lock.acquire('key', { mode: 'read' })));
    await clock.settle();
    const startMs = clock.now().monoMs;
    // Each takes its own when it is granted.
    const shares = [0, 0.25, 0.5, 0.75, 1];
    clock.jitter = () => shares.shift() ?? 0.5;
    await first.release();
    await Promise.all(readers);
    await clock.advance(2_000);
    // Those that are due close to each other travel together.
    const due = times(store.calls, 'renew', startMs);
    expect(due.map((ms) => Math.round(ms / 250) * 250)).toEqual([1_000, 1_000, 1_500, 1_500, 2_000]);
  });

  it('If a lock goes to more readers than one call lets in, earlier claims are renewed before more readers get theirs', async () => {
    const setup = setUp({ maxWaitersPerKey: 1_000 });
    const first = await taken(setup);
    const readers = Array.from({ length: 600 }, () => setup.job().in(() => lock.acquire('key', { mode: 'read' })));
    await setup.clock.settle();
    await first.release();
    await Promise.all(readers);
    // No time has passed.
    expect(setup.store.count('renew')).toBe(512);
  });

  it('A claim is renewed a third of it after it arrived at the latest, even if the reply to its acquire arrived later', async () => {
    const setup = setUpLast({ claimMs: 600 });
    const { store, clock } = setup;
    const first = await taken(setup.sibling());
    const open = store.gate('acquire');
    const acquired = setup.job().in(() => lock.acquire('key'));
    await clock.settle();
    await first.release();
    const startMs = clock.now().monoMs;
    await clock.advance(150);
    open();
    await acquired;
    await clock.advance(100);
    expect(times(store.calls, 'renew', startMs)).toEqual([198]);
  });

  it('A claim of a fixed lease is renewed once, to the grant plus the lease', async () => {
    const setup = setUpLast({ claimMs: 600 });
    const { store, clock } = setup;
    const hold = await handOver(setup, { leaseMs: 5_000, renew: false });
    await clock.advance(250);
    expect(store.count('renew')).toBe(1);
    const [renewal] = store.calls.filter((call) => call.operation === 'renew');
    expect(renewal?.terms).toMatchObject({ leaseMs: 5_000 - 198 });
    await clock.advance(4_750);
    expect(hold.isHeld()).toBe(false);
    expect(store.count('renew')).toBe(1);
  });

  it('A claim is renewed no later because of inner holds that begin and end', async () => {
    const setup = setUpLast({ claimMs: 600 });
    const { store, clock } = setup;
    const first = await taken(setup);
    const { in: inJob } = setup.job();
    const acquired = inJob(() => lock.acquire('key', { renew: false }));
    await clock.settle();
    await first.release();
    await acquired;
    const startMs = clock.now().monoMs;
    for (let n = 0; n < 10; n++) await inJob(() => lock.run('key', () => clock.advance(25)));
    expect(times(store.calls, 'renew', startMs)).toEqual([198]);
  });

  it('A claim is not renewed much earlier because of inner holds, however long its lease will be', async () => {
    const setup = setUpLast({ claimMs: 600 });
    await setup.job().in(() => lock.acquire('short', { leaseMs: 100 }));
    const hold = await handOver(setup, { leaseMs: 30_000 });
    const startMs = setup.clock.now().monoMs;
    const renewals: number[] = [];
    setup.locks.on('renewed', (event) => {
      if (pathOf(event) === pathOf(hold)) renewals.push(setup.clock.now().monoMs - startMs);
    });
    await setup.clock.advance(250);
    expect(renewals).toHaveLength(1);
    expect(renewals[0]).toBeGreaterThanOrEqual(198 - 30);
  });

  it('A claim that is released before its renewal is never renewed', async () => {
    const setup = setUp({ claimMs: 600 });
    const hold = await handOver(setup, { leaseMs: 30_000 });
    await setup.clock.advance(100);
    await hold.release();
    await setup.clock.advance(1_000);
    expect(setup.store.count('renew')).toBe(0);
  });

  it('A claim has further tries, each with a third of what is left, and is lost at its end', async () => {
    const setup = setUp({ claimMs: 600 });
    const { store, clock } = setup;
    const hold = await handOver(setup, { leaseMs: 30_000 });
    const startMs = clock.now().monoMs;
    store.always('renew', { kind: 'lostCall' });
    await clock.advance(592);
    expect(hold.isHeld()).toBe(false);
    expect(times(store.calls, 'renew', startMs).length).toBeGreaterThanOrEqual(2);
  });

  // Before the first renewal, which is due within a third of the claim, and after it.
  it.each([
    ['2 s right before its first renewal', 970, 1_950, true],
    ['more than 2 s right before its first renewal', 970, 2_010, false],
    ['two thirds of its lease later', 1_010, 6_600, true],
  ])('A hold that had to wait and whose process pauses for %s is held or lost as the page says', async (_, ...of) => {
    const [workMs, pauseMs, isHeld] = of;
    const setup = setUpLast({ claimMs: 3_000 });
    const { store, clock } = setup;
    const hold = await handOver(setup, { leaseMs: 10_000 });
    await clock.advance(workMs);
    // What a process that stands still would have sent is not sent.
    store.always('renew', { kind: 'lostCall' });
    await clock.advance(pauseMs);
    expect(hold.isHeld()).toBe(isHeld);
    expect(hold.signal.aborted).toBe(!isHeld);
  });

  it('A claim is not longer than a short lease', async () => {
    const setup = setUp({ claimMs: 3_000 });
    const hold = await handOver(setup, { leaseMs: 100 });
    expect(hold.remainingMs()).toBeLessThanOrEqual(100);
    await setup.clock.advance(1_000);
    expect(hold.isHeld()).toBe(true);
  });
});
