import { Deadlocks } from '../../../src/core/deadlock/deadlock.ts';
import { type AcquireOptions, DeadlockError, type Hold, lock } from '../../../src/core/index.ts';
import { runtimeOf } from '../../../src/core/runtime/locks.ts';
import type { StoreOperation } from '../../support/stores/fake-store.ts';
import { coreTests, type Job, type Outcome, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

type Waiter = Parameters<Deadlocks['onWaiting']>[0];
type Task = Waiter['task'];

const setUp = coreTests();
const edgeCalls: readonly StoreOperation[] = ['setEdge', 'clearEdge', 'edgesOf', 'wait'];

/** An acquire in a job, as far as it comes without time passing. */
async function asked(
  { clock }: Setup,
  job: Job,
  key: string,
  options?: Parameters<typeof lock.acquire>[1],
): Promise<Outcome<Hold>> {
  return clock.settled(outcomeOf(job.in(() => lock.acquire(key, options))));
}

/** Jobs that hold a key each: the first `k0`, and so on. */
async function holders(setup: Setup, ...traces: string[]): Promise<Job[]> {
  const jobs = traces.map((trace) => setup.job(trace));
  for (const [n, job] of jobs.entries()) await job.in(() => lock.acquire(`k${n}`));
  return jobs;
}

const edgeCallsOf = ({ store }: Setup): number => edgeCalls.reduce((sum, operation) => sum + store.count(operation), 0);

describe('two traces that take two keys in opposite order', () => {
  it.each(['one process', 'two processes'])(
    'Requests of %s do not wait for each other in a deadlock: the one that was queued last is refused at once, and the other continues',
    async (where) => {
      const setup = setUp();
      const other = where === 'one process' ? setup : setup.sibling();
      const [a, b] = [setup.job(), other.job()];
      await a.in(() => lock.acquire('k0'));
      await b.in(() => lock.acquire('k1'));
      const first = await asked(setup, a, 'k1');
      const second = await asked(other, b, 'k0');
      expect([first.state, second.state]).toEqual(['pending', 'rejected']);
      expect(second.error).toBeInstanceOf(DeadlockError);
      expect(second.error).toMatchObject({ code: 'ERR_LOCK_DEADLOCK', status: 409, key: 'k0' });
      await b.end();
      await setup.clock.settle();
      expect(first.state).toBe('fulfilled');
    },
  );

  it('are named by the error, in order, and not by its message', async () => {
    const setup = setUp();
    const seen = setup.events('deadlock');
    const [a, b] = await holders(setup, 'trace-a', 'trace-b');
    await asked(setup, a!, 'k1');
    await setup.clock.advance(100);
    const { error } = await asked(setup, b!, 'k0');
    const cycle = [
      { traceId: 'trace-b', key: 'k0' },
      { traceId: 'trace-a', key: 'k1' },
    ];
    expect((error as DeadlockError).cycle).toEqual(cycle);
    expect(`${error} ${JSON.stringify(error)}`).not.toMatch(/k0|k1|trace/);
    const parts = { key: 'k0', category: undefined, mode: 'write', traceId: 'trace-b', branch: '' };
    expect(seen).toEqual([{ ...parts, holdId: expect.any(String), waitedMs: 0, cycle }]);
  });

  it('The event of a deadlock leaves out a step of the wall clock', async () => {
    const setup = setUp();
    const seen = setup.events('deadlock');
    const [a, b] = await holders(setup, 'a', 'b');
    await asked(setup, a!, 'k1');
    const second = outcomeOf(b!.in(() => lock.acquire('k0')));
    setup.clock.jumpWall(9_000);
    await setup.clock.settle();
    expect(second.error).toBeInstanceOf(DeadlockError);
    expect(seen).toMatchObject([{ waitedMs: 0 }]);
  });

  it('A deadlock leaves nothing of the wait: the victim may try again once it has released its holds', async () => {
    const setup = setUp();
    const [a, b] = await holders(setup, 'a', 'b');
    const first = await asked(setup, a!, 'k1');
    expect((await asked(setup, b!, 'k0')).error).toBeInstanceOf(DeadlockError);
    await b!.in(() => lock.release('k1'));
    await setup.clock.settle();
    const again = await asked(setup, b!, 'k0');
    expect([first.state, again.state]).toEqual(['fulfilled', 'pending']);
    await a!.end();
    await setup.clock.settle();
    expect(again.state).toBe('fulfilled');
  });

  it('and wait in the other order of their calls have the same victim: the place in the queue decides', async () => {
    const setup = setUp();
    const [a, b] = await holders(setup, 'a', 'b');
    // The first one's word of its wait comes after the second one has looked.
    setup.store.next('setEdge', { kind: 'lateCall', ms: 50 });
    const first = await asked(setup, a!, 'k1');
    await setup.clock.advance(1);
    const second = await asked(setup, b!, 'k0');
    expect([first.state, second.state]).toEqual(['pending', 'pending']);
    await setup.clock.advance(900);
    expect([first.state, second.state]).toEqual(['pending', 'pending']);
    // The second looks again with its poll.
    await setup.clock.advance(200);
    expect([first.state, second.state]).toEqual(['pending', 'rejected']);
    expect(second.error).toBeInstanceOf(DeadlockError);
  });
});

it('A wait is published before the search: of two waits that close a cycle, one sees all of it', async () => {
  const setup = setUp();
  const [a] = await holders(setup, 'a', 'b');
  const open = setup.store.gate('setEdge');
  await asked(setup, a!, 'k1');
  expect(setup.store.count('setEdge')).toBe(1);
  expect(setup.store.count('wait')).toBe(0);
  open();
  await setup.clock.settle();
  expect(setup.store.count('wait')).toBe(1);
});

describe('a ring of waits', () => {
  it('of five has one victim, and the others get through one after the other', async () => {
    const setup = setUp();
    const traces = ['a', 'b', 'c', 'd', 'e'];
    const jobs = await holders(setup, ...traces);
    // Queued in another order than that of the ring.
    const waits: Outcome<Hold>[] = [];
    for (const n of [2, 0, 4, 1, 3]) waits[n] = await asked(setup, jobs[n]!, `k${(n + 1) % 5}`);
    expect(waits.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending', 'rejected', 'pending']);
    expect((waits[3]!.error as DeadlockError).cycle).toEqual(
      [3, 4, 0, 1, 2].map((n) => ({ traceId: traces[n], key: `k${(n + 1) % 5}` })),
    );
    for (const n of [3, 2, 1, 0]) {
      await jobs[n]!.end();
      await setup.clock.settle();
      expect(waits[(n + 4) % 5]!.state).toBe('fulfilled');
    }
  });

  it('that a hand-off closes is found with the next poll', async () => {
    const setup = setUp();
    const [a, b, c] = await holders(setup, 'a', 'b', 'c');
    // Two branches of `a` wait: it is granted k2 by hand-off, while `b` waits for that and it waits for `b`.
    const forB = await asked(setup, a!, 'k1');
    const forC = await asked(setup, a!, 'k2');
    const ofB = await asked(setup, b!, 'k2');
    await c!.end();
    await setup.clock.settle();
    expect([forB, forC, ofB].map(({ state }) => state)).toEqual(['pending', 'fulfilled', 'pending']);
    await setup.clock.advance(1_300);
    expect([forB, ofB].map(({ state }) => state)).toEqual(['pending', 'rejected']);
    expect(ofB.error).toBeInstanceOf(DeadlockError);
  });

  it('A deadlock that is closed by a hold granted after the wait is found with the next poll', async () => {
    const setup = setUp();
    const [a, b] = [setup.job(), setup.job()];
    await b.in(() => lock.acquire('k1'));
    // It waits first, and holds then: two branches of a request.
    const first = await asked(setup, a, 'k1');
    await a.in(() => lock.acquire('k0'));
    const second = await asked(setup, b, 'k0');
    expect(second.state).toBe('pending');
    await setup.clock.advance(2_600);
    expect([first.state, second.state]).toEqual(['pending', 'rejected']);
  });
});

describe('a trace is one line of work', () => {
  it('also where it has re-entered the key that others wait for', async () => {
    const setup = setUp();
    const [a, b] = await holders(setup, 'a', 'b');
    await a!.in(async () => {
      const outer = await lock.acquire('k0');
      await lock.acquire('k0');
      await outer.release();
    });
    const first = await asked(setup, b!, 'k0');
    const second = await setup.clock.settled(outcomeOf(a!.in(() => lock.run('k0', () => lock.acquire('k1')))));
    expect([first.state, second.state]).toEqual(['pending', 'rejected']);
    expect((second.error as DeadlockError).cycle).toEqual([
      { traceId: 'a', key: 'k1' },
      { traceId: 'b', key: 'k0' },
    ]);
  });

  it('and a called service that holds nothing itself waits for its caller, too', async () => {
    const setup = setUp();
    const service = setup.sibling();
    const [, b] = await holders(setup, 'a', 'b');
    const called = service.job('a');
    const first = await asked(setup, b!, 'k0');
    const second = await asked(service, called, 'k1');
    expect([first.state, second.state]).toEqual(['pending', 'rejected']);
    expect((second.error as DeadlockError).cycle[0]).toEqual({ traceId: 'a', key: 'k1' });
  });

  it('whether it holds as itself or for this request alone', async () => {
    const setup = setUp();
    const [a, b] = [setup.job(), setup.job()];
    await a.in(() => lock.acquire('k0', { reentrant: 'request' }));
    await b.in(() => lock.acquire('k1', { reentrant: 'request' }));
    const first = await asked(setup, a, 'k1');
    const second = await asked(setup, b, 'k0');
    expect([first.state, second.state]).toEqual(['pending', 'rejected']);
  });

  it('but for what it holds with `reentrant: false`: its branches exclude each other, and wait', async () => {
    const setup = setUp();
    const [a, b] = [setup.job(), setup.job()];
    await a.in(() => lock.acquire('k0', { reentrant: false }));
    await b.in(() => lock.acquire('k1'));
    // Another branch of `a`, and then the end of the first one.
    const own = await asked(setup, a, 'k1', { reentrant: false });
    const other = await asked(setup, b, 'k0');
    await setup.clock.advance(2_600);
    expect([own.state, other.state]).toEqual(['pending', 'pending']);
    await a.in(() => lock.release('k0'));
    await setup.clock.settle();
    expect([own.state, other.state]).toEqual(['pending', 'fulfilled']);
  });

  it('and may wait for itself with `reentrant: false`', async () => {
    const setup = setUp();
    const job = setup.job('trace');
    const outer = await job.in(() => lock.acquire('key'));
    const own = await asked(setup, job, 'key', { reentrant: false });
    await setup.clock.advance(2_600);
    expect(own.state).toBe('pending');
    await outer.release();
    await setup.clock.settle();
    expect(own.state).toBe('fulfilled');
  });
});

describe('a batch', () => {
  it('A batch that waits for a key while it holds others closes a cycle with a request that takes them one by one', async () => {
    const setup = setUp();
    const [one, two] = [setup.job('one'), setup.job('two')];
    await two.in(() => lock.acquire('b'));
    const batch = await setup.clock.settled(outcomeOf(one.in(() => lock.acquireAll(['a', 'b', 'c']))));
    const single = await asked(setup, two, 'a');
    expect([batch.state, single.state]).toEqual(['pending', 'rejected']);
    expect((single.error as DeadlockError).cycle).toEqual([
      { traceId: 'two', key: 'a' },
      { traceId: 'one', key: 'b' },
    ]);
    await two.end();
    await setup.clock.settle();
    expect(batch.state).toBe('fulfilled');
  });

  it('that is the one to be refused gives back all of its keys, and what its job held before stays held', async () => {
    const setup = setUp();
    const [one, two, three] = ['one', 'two', 'three'].map((trace) => setup.job(trace));
    await two!.in(() => lock.acquire('b'));
    const before = await one!.in(() => lock.acquire('z'));
    const single = await asked(setup, two!, 'z');
    const batch = await setup.clock.settled(outcomeOf(one!.in(() => lock.acquireAll(['a', 'b', 'c']))));
    expect([batch.state, single.state, before.isHeld()]).toEqual(['rejected', 'pending', true]);
    expect((batch.error as DeadlockError).cycle).toEqual([
      { traceId: 'one', key: 'b' },
      { traceId: 'two', key: 'z' },
    ]);
    const rest = await setup.clock.settled(outcomeOf(three!.in(() => lock.acquireAll(['a', 'c']))));
    expect(rest.state).toBe('fulfilled');
  });

  it('closes one with a batch of another category, each within the other’s', async () => {
    const setup = setUp();
    const [one, two] = [setup.job('one'), setup.job('two')];
    const all = (category: string) => lock.acquireAll(['m', 'n'], { category });
    await one.in(() => all('x'));
    await two.in(() => all('y'));
    const first = await setup.clock.settled(outcomeOf(one.in(() => all('y'))));
    const last = await setup.clock.settled(outcomeOf(two.in(() => all('x'))));
    expect([first.state, last.state]).toEqual(['pending', 'rejected']);
    expect(last.error).toBeInstanceOf(DeadlockError);
  });
});

it('The victim is the wait that was queued last, whatever the priorities: not the last one in its queue', async () => {
  const setup = setUp();
  const [a, b] = await holders(setup, 'a', 'b');
  const ahead = await asked(setup, setup.job(), 'k1');
  const low = await asked(setup, a!, 'k1', { priority: -5 });
  const high = await asked(setup, b!, 'k0', { priority: 50 });
  expect([ahead.state, low.state, high.state]).toEqual(['pending', 'pending', 'rejected']);
});

describe('readers', () => {
  it('A waiter waits for all holders of a shared key: a cycle through any of them is found', async () => {
    const setup = setUp();
    const readers = ['r0', 'r1', 'r2'].map((trace) => setup.job(trace));
    const writer = setup.job('writer');
    for (const reader of readers) await reader.in(() => lock.acquire('shared', { mode: 'read' }));
    await writer.in(() => lock.acquire('k'));
    const first = await asked(setup, readers[1]!, 'k');
    const last = await asked(setup, writer, 'shared');
    expect([first.state, last.state]).toEqual(['pending', 'rejected']);
    expect((last.error as DeadlockError).cycle).toEqual([
      { traceId: 'writer', key: 'shared' },
      { traceId: 'r1', key: 'k' },
    ]);
    await writer.end();
    await setup.clock.settle();
    expect(first.state).toBe('fulfilled');
  });

  it('Two readers that wait for a writer which waits for both are two cycles: each has its victim', async () => {
    const setup = setUp();
    const [one, two, writer] = ['r1', 'r2', 'writer'].map((trace) => setup.job(trace));
    for (const reader of [one!, two!]) await reader.in(() => lock.acquire('shared', { mode: 'read' }));
    await writer!.in(() => lock.acquire('k'));
    const waits = [await asked(setup, writer!, 'shared'), await asked(setup, one!, 'k'), await asked(setup, two!, 'k')];
    expect(waits.map(({ state }) => state)).toEqual(['pending', 'rejected', 'rejected']);
    await one!.end();
    await two!.end();
    await setup.clock.settle();
    expect(waits[0]!.state).toBe('fulfilled');
  });

  it('Readers behind a writer wait with it: a cycle through the reader that it waits for is found', async () => {
    const setup = setUp();
    const [reader, writer, behind] = ['reader', 'writer', 'behind'].map((trace) => setup.job(trace));
    await reader!.in(() => lock.acquire('shared', { mode: 'read' }));
    await behind!.in(() => lock.acquire('k'));
    const first = await asked(setup, writer!, 'shared');
    const second = await asked(setup, reader!, 'k');
    const last = await asked(setup, behind!, 'shared', { mode: 'read' });
    expect([first.state, second.state, last.state]).toEqual(['pending', 'pending', 'rejected']);
    await behind!.end();
    await setup.clock.settle();
    expect(second.state).toBe('fulfilled');
  });

  it('A reader of one request that asks to write alongside others is named by its trace', async () => {
    const setup = setUp();
    const [one, other] = [setup.job('one'), setup.job('other')];
    await other.in(() => lock.acquire('key', { mode: 'read' }));
    await one.in(() => lock.acquire('key', { mode: 'read', reentrant: 'request' }));
    const { error } = await asked(setup, one, 'key', { reentrant: 'request' });
    expect((error as DeadlockError).cycle).toEqual([{ traceId: 'one', key: 'key' }]);
  });
});

describe('what is not there any more', () => {
  it('A wait that was given up closes no cycle, although its edge is still published', async () => {
    const setup = setUp();
    const [a, b] = await holders(setup, 'a', 'b');
    setup.store.always('clearEdge', { kind: 'lostCall' });
    const gone = await asked(setup, a!, 'k1', { waitMs: 50 });
    await setup.clock.advance(50);
    expect(gone.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT' });
    expect(setup.store.count('clearEdge')).toBe(1);
    const waiter = await asked(setup, b!, 'k0');
    await setup.clock.advance(2_000);
    expect(waiter.state).toBe('pending');
    expect(setup.store.count('edgesOf')).toBeGreaterThan(1);
  });

  it('closes no ring: one that was seen in two halves, which did not stand at the same time', async () => {
    const setup = setUp();
    const [a, b, c] = await holders(setup, 'a', 'b', 'c');
    const first = await asked(setup, a!, 'k1');
    const next = await asked(setup, c!, 'k0');
    // The second has seen that the first holds k0; when it sees for what that one waits, k0 is another's.
    const open = setup.store.gate('edgesOf');
    const second = await asked(setup, b!, 'k0');
    await a!.in(() => lock.release('k0'));
    const seen = setup.store.count('wait');
    open();
    await setup.clock.settle();
    expect([first.state, next.state, second.state]).toEqual(['pending', 'fulfilled', 'pending']);
    // One look at the first one's wait, which closes the ring, and two for all of it again.
    expect(setup.store.count('wait') - seen).toBeGreaterThanOrEqual(3);
    await setup.clock.advance(2_600);
    expect([first.state, second.state]).toEqual(['pending', 'pending']);
  });

  it('is removed: the edge of a wait that ended well, ran out, was aborted or closed a ring', async () => {
    const setup = setUp();
    const [a, b, c] = await holders(setup, 'a', 'b', 'c');
    const abort = new AbortController();
    await asked(setup, a!, 'k2', { waitMs: 10 });
    await asked(setup, a!, 'k2', { signal: abort.signal });
    await asked(setup, a!, 'k2');
    await asked(setup, b!, 'k0');
    await asked(setup, c!, 'k1');
    abort.abort();
    await setup.clock.advance(10);
    await c!.end();
    await setup.clock.settle();
    await a!.end();
    await setup.clock.settle();
    expect(await setup.store.remains()).toEqual(['k0', 'k1']);
  });

  it('closes no ring: one that ended while the ring was looked at again', async () => {
    const setup = setUp();
    const deadlocks = setup.events('deadlock');
    const [a, b] = (await holders(setup, 'a', 'b')) as [Job, Job];
    const first = await asked(setup, a, 'k1');
    const at = { kind: 'lateReply', ms: 0 } as const;
    setup.store.next('wait', at, at, { kind: 'lateReply', ms: 100 }, at);
    const second = await asked(setup, b, 'k0', { waitMs: 50 });
    await setup.clock.advance(200);
    expect(setup.store.count('wait')).toBeGreaterThanOrEqual(4);
    expect((second.error as { code: string }).code).toBe('ERR_LOCK_TIMEOUT');
    expect([first.state, deadlocks]).toEqual(['pending', []]);
  });

  it('goes by itself when nobody is left to remove it', async () => {
    const setup = setUp();
    const [a] = await holders(setup, 'a', 'b');
    setup.store.always('clearEdge', { kind: 'lostCall' });
    const failures = setup.events('storeError');
    await asked(setup, a!, 'k1', { waitMs: 10 });
    await setup.clock.advance(10);
    expect(await setup.store.remains()).toContain('edges of a');
    await setup.clock.advance(5_000);
    expect(await setup.store.remains()).not.toContain('edges of a');
    expect(failures).toEqual([{ operation: 'edges', key: 'k1', error: expect.any(Error) }]);
  });

  it('A wait is published for as long as it lasts', async () => {
    const setup = setUp();
    const [a, b] = await holders(setup, 'a', 'b');
    const first = await asked(setup, a!, 'k1', { waitMs: 60_000 });
    await setup.clock.advance(40_000);
    const second = await asked(setup, b!, 'k0');
    expect([first.state, second.state]).toEqual(['pending', 'rejected']);
  });
});

describe('A request that can be in no cycle pays nothing', () => {
  it.each<[string, (job: Job, setup: Setup) => unknown]>([
    ['holds nothing', () => {}],
    ['has released what it held', (job) => job.in(() => lock.run('free', () => {}))],
    [
      'has lost its hold, which was not released',
      async (job, { clock }) => {
        await job.in(() => lock.acquire('short', { leaseMs: 1_000, renew: false }));
        await clock.advance(1_000);
      },
    ],
  ])('A waiter of its own trace that %s makes no further store call, however long it waits', async (_, before) => {
    const setup = setUp();
    await holders(setup, 'a');
    const job = setup.job();
    await before(job, setup);
    const waiter = await asked(setup, job, 'k0');
    await setup.clock.advance(3_000);
    expect([waiter.state, edgeCallsOf(setup)]).toEqual(['pending', 0]);
  });

  it('nor does anybody in a store that lacks edges, though it has the methods', async () => {
    const setup = setUp();
    const { store } = setup;
    Object.assign(store, { capabilities: { ...store.capabilities, edges: false } });
    const lacking = setup.sibling();
    const [a] = await holders(lacking, 'a', 'b');
    const waiter = await asked(lacking, a!, 'k1');
    await setup.clock.advance(3_000);
    expect([waiter.state, edgeCallsOf(setup)]).toEqual(['pending', 0]);
  });

  it('A request that gives up before it has published its wait pays nothing more', async () => {
    const setup = setUp();
    const { store, clock } = setup;
    const [a] = await holders(setup, 'a', 'b');
    const open = store.gate('setEdge');
    const controller = new AbortController();
    const waiter = await asked(setup, a!, 'k1', { signal: controller.signal });
    controller.abort();
    open();
    await clock.advance(3_000);
    expect([waiter.state, store.count('setEdge'), store.count('clearEdge')]).toEqual(['rejected', 1, 1]);
    expect([store.count('wait'), store.count('edgesOf')]).toEqual([0, 0]);
  });

  it('nor does one that is forgotten already', async () => {
    const { locks, store, clock } = setUp();
    const deadlocks = new Deadlocks(runtimeOf(locks), () => {});
    const { process } = runtimeOf(locks);
    const request = {
      id: 'key',
      holdId: 'hold',
      owner: 'own',
      process,
      claimMs: 1_000,
      mode: 'write',
      priority: 0,
    } as const;
    const task = {
      key: 'key',
      request,
      work: { traceId: 'own', route: undefined, blockedOwners: ['own'] },
      startedAt: clock.now(),
    };
    const waiter = { task: task as Partial<Task> as Task, state: 'waiting' } as Partial<Waiter> as Waiter;
    deadlocks.onWaiting(waiter);
    await clock.settle();
    for (let n = 0; n < 3; n++) deadlocks.onEnded(waiter);
    expect(store.count('clearEdge')).toBe(1);
  });

  it('A request whose grant arrived before the reply that queued it pays nothing', async () => {
    const setup = setUp();
    const other = setup.sibling();
    const first = await other.job().in(() => lock.acquire('key'));
    const job = setup.job();
    await job.in(() => lock.acquire('own'));
    const open = setup.store.gate('acquire');
    const waiter = await asked(setup, job, 'key');
    await first.release();
    await setup.clock.settle();
    open();
    await setup.clock.settle();
    expect([waiter.state, edgeCallsOf(setup)]).toEqual(['fulfilled', 0]);
  });

  it('nor does anybody on a store that keeps no edges', async () => {
    const setup = setUp();
    Object.assign(setup.store, { edges: undefined });
    const without = setup.sibling();
    const jobs = [without.job('a'), without.job('b')];
    await jobs[0]!.in(() => lock.acquire('k0'));
    await jobs[1]!.in(() => lock.acquire('k1'));
    const waits = [await asked(without, jobs[0]!, 'k1'), await asked(without, jobs[1]!, 'k0')];
    await setup.clock.advance(15_000);
    expect(waits.map(({ error }) => error)).toEqual(
      waits.map(() => expect.objectContaining({ code: 'ERR_LOCK_TIMEOUT' })),
    );
  });
});

describe('the searches of a process', () => {
  /** Calls of a key in ten seconds in which nothing changes. */
  async function quietCalls(setup: Setup): Promise<number> {
    // Until all that may have been published late is known.
    await setup.clock.advance(10_000);
    const calls = (): number => edgeCallsOf(setup) + setup.store.count('acquire');
    const before = calls();
    await setup.clock.advance(10_000);
    return calls() - before;
  }

  it.each<[string, number, AcquireOptions, number, number]>([
    ['one holder and 1,000 waiters that may be waited for', 1, {}, 1_000, 1_020],
    ['64 readers and 300 waiters', 64, { mode: 'read' }, 300, 450],
  ])('make two calls a second at most with the polls, for %s', async (_, holding, options, waiting, fewCalls) => {
    const setup = setUp();
    for (let n = 0; n < holding; n += 1) await setup.job(`h${n}`).in(() => lock.acquire('key', options));
    for (let n = 0; n < waiting; n += 1)
      outcomeOf(setup.job(`w${n}`).in(() => lock.acquire('key', { waitMs: 60_000 })));
    await setup.clock.settle();
    // Each wait is published; few searches serve all of them.
    expect(setup.store.count('setEdge')).toBe(waiting);
    expect(edgeCallsOf(setup)).toBeLessThan(fewCalls);
    expect(await quietCalls(setup)).toBeLessThanOrEqual(20);
    expect(setup.store.count('setEdge')).toBe(waiting);
  });

  it('find a ring within two polls that a hand-off closes far away, long after all have begun to wait', async () => {
    const setup = setUp();
    const [a, b, c, d] = await holders(setup, 'a', 'b', 'c', 'd');
    const endless = { waitMs: 120_000 };
    // b waits for d, d for c, a for b and, in another branch, for c.
    const waits = [await asked(setup, d!, 'k2', endless), await asked(setup, a!, 'k1', endless)];
    const ofD = await asked(setup, a!, 'k2', { ...endless, priority: 50 });
    const last = await asked(setup, b!, 'k3', endless);
    await setup.clock.advance(60_000);
    await c!.end();
    await setup.clock.settle();
    expect([ofD.state, last.state]).toEqual(['fulfilled', 'pending']);
    await setup.clock.advance(2_600);
    expect([...waits.map(({ state }) => state), last.state]).toEqual(['pending', 'pending', 'rejected']);
    expect(last.error).toBeInstanceOf(DeadlockError);
  });

  it('publish a wait again that the store had lost', async () => {
    const setup = setUp();
    const [a] = await holders(setup, 'a', 'b');
    const first = await asked(setup, a!, 'k1', { waitMs: 60_000 });
    await setup.store.forget();
    await setup.job('new').in(() => lock.acquire('k1'));
    const published = setup.store.count('setEdge');
    await setup.clock.advance(1_300);
    expect([first.state, setup.store.count('setEdge')]).toEqual(['pending', published + 1]);
  });
});

describe('a store that fails', () => {
  it('finds no ring and breaks no wait; the next poll finds it', async () => {
    const setup = setUp();
    const failures = setup.events('storeError');
    const [a, b] = await holders(setup, 'a', 'b');
    const first = await asked(setup, a!, 'k1');
    setup.store.next('wait', { kind: 'rejected', error: new Error('read ECONNRESET') });
    const second = await asked(setup, b!, 'k0');
    expect([first.state, second.state]).toEqual(['pending', 'pending']);
    expect(failures).toEqual([{ operation: 'edges', key: 'k0', error: expect.any(Error) }]);
    await setup.clock.advance(1_300);
    expect([first.state, second.state]).toEqual(['pending', 'rejected']);
  });

  it('that does not reply is asked once at a time', async () => {
    const setup = setUp();
    const [a] = await holders(setup, 'a', 'b');
    setup.store.always('setEdge', { kind: 'lateReply', ms: 1_900 });
    const waiter = await asked(setup, a!, 'k1', { waitMs: 1_800 });
    await setup.clock.advance(1_800);
    expect([waiter.state, setup.store.count('setEdge')]).toEqual(['rejected', 1]);
  });
});
