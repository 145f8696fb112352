import { LockStoreError, lock } from '../../../src/core/index.ts';
import { QuorumStore } from '../../../src/stores/quorum/quorum-store.ts';
import { FakeStore } from '../../support/stores/fake-store.ts';
import { coreTests, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

/** The nodes of the test's quorum; the first is the set-up's own store. */
let nodes: FakeStore[] = [];

// Every process has a quorum store of its own, on the same nodes.
const setUp = coreTests((store, clock) => {
  if (nodes[0] !== store) nodes = [store, new FakeStore(clock), new FakeStore(clock)];
  return new QuorumStore({ stores: nodes }, clock);
});

afterEach(async () => {
  for (const node of nodes) expect(await node.remains()).toEqual([]);
});

const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;

function breakDown(node: FakeStore | undefined): void {
  for (const operation of ['acquire', 'renew', 'release', 'inspect'] as const) node?.always(operation, down);
}

/** Who waits in a job of its own, holds the key for `holdMs`, and goes; answers the fences in the order of the holds. */
function takeTurns(processes: readonly Setup[], turns: number, holdMs: number) {
  const fences: number[] = [];
  let holders = 0;
  const turn = async (process: Setup): Promise<void> => {
    await process.job().in(() =>
      lock.run('key', async ({ fence }) => {
        holders += 1;
        expect(holders).toBe(1);
        fences.push(fence);
        await new Promise<void>((resolve) => process.clock.after(holdMs, resolve));
        holders -= 1;
      }),
    );
  };
  const all = Array.from({ length: turns }, () => processes.map(turn)).flat();
  return { fences, all: outcomeOf(Promise.all(all)) };
}

describe('A wait for a lock on a quorum', () => {
  it('A wait ends within 10 ms of the release, with one try for the messages of all nodes', async () => {
    const setup = setUp();
    const first = await taken(setup.sibling());
    const waiter = await queued(setup);
    await setup.clock.advance(3_000);
    const count = nodes[0]?.count('acquire') ?? 0;
    await first.release();
    await setup.clock.advance(10);
    expect(waiter.value?.fence).toBeGreaterThan(first.fence);
    expect(nodes.map((node) => node.count('acquire'))).toEqual(nodes.map(() => count + 1));
    await setup.clock.advance(100);
    expect(nodes[0]?.count('acquire')).toBe(count + 1);
  });

  it('Waits in two processes all end, one holder at a time, with rising fences', async () => {
    const setup = setUp();
    const { fences, all } = takeTurns([setup, setup.sibling()], 10, 20);
    await setup.clock.advance(5_000);
    expect(all.error).toBeUndefined();
    expect(all.state).toBe('fulfilled');
    expect(fences).toHaveLength(20);
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
  });

  it('A wait ends soon after a release that is announced while a poll is on its way', async () => {
    const setup = setUp({ pollMs: 2_000 });
    const first = await taken(setup.sibling());
    const waiter = await queued(setup);
    // Until only polls and announcements lead to a try.
    await setup.clock.advance(5_000);
    for (const node of nodes) node.always('acquire', { kind: 'lateReply', ms: 100 });
    const count = nodes[0]?.count('acquire') ?? 0;
    while (nodes[0]?.count('acquire') === count) await setup.clock.advance(1);
    await setup.clock.advance(10);
    await first.release();
    await setup.clock.advance(300);
    expect(waiter.value?.isHeld()).toBe(true);
  });

  it('A wait goes on while a node is down, and when it is back', async () => {
    const setup = setUp();
    const { fences, all } = takeTurns([setup, setup.sibling()], 10, 20);
    await setup.clock.advance(100);
    breakDown(nodes[1]);
    await setup.clock.advance(150);
    expect(fences.length).toBeLessThan(20);
    nodes[1]?.heal();
    await setup.clock.advance(8_000);
    expect(all.error).toBeUndefined();
    expect(fences).toHaveLength(20);
  });

  it('A wait lasts while no quorum can be had, ends when it is back, and names the nodes at its timeout', async () => {
    const setup = setUp();
    const first = await taken(setup.sibling(), { leaseMs: 60_000 });
    const [hasty, patient] = [await queued(setup, { waitMs: 2_000 }), await queued(setup)];
    for (const node of nodes.slice(1)) breakDown(node);
    await setup.clock.advance(2_000);
    expect(hasty.error).toBeInstanceOf(LockStoreError);
    expect((hasty.error as Error).message).toMatch(/quorum/);
    expect(patient.state).toBe('pending');
    for (const node of nodes) node.heal();
    await first.release();
    await setup.clock.advance(3_000);
    expect(patient.state).toBe('fulfilled');
  });

  it('Waits of parallel branches for what another branch has left to their request end, one branch inside at a time', async () => {
    const setup = setUp();
    let inside = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      expect(inside).toBe(1);
      await new Promise<void>((resolve) => setup.clock.after(20, resolve));
      inside -= 1;
    };
    const leave = async (): Promise<void> => {
      await lock.acquire('key');
      await work();
    };
    const job = setup.job();
    const left = job.in(() => lock.run('other', leave));
    await setup.clock.settle();
    const run = (): Promise<void> => lock.run('key', work);
    const all = outcomeOf(job.in(() => Promise.all([run(), lock.runAll(['third', 'key'], work), run()])));
    const stranger = await queued(setup.sibling());
    await setup.clock.advance(1_000);
    await left;
    expect([all.state, stranger.state]).toEqual(['fulfilled', 'pending']);
    await job.end();
    await setup.clock.advance(1_000);
    expect(stranger.state).toBe('fulfilled');
  });

  it('A wait is overtaken by re-entry from the other process', async () => {
    const setup = setUp();
    const other = setup.sibling();
    const outer = await setup.job('trace').in(() => lock.acquire('key'));
    const stranger = await queued(other);
    const inner = await setup.clock.settled(outcomeOf(other.job('trace').in(() => lock.acquire('key'))));
    expect(inner.value?.fence).toBe(outer.fence);
    expect(stranger.state).toBe('pending');
  });
});
