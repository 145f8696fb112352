import { type Hold, lock, traceHeaders } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, crowdOf, type Job, outcomeOf } from '../../support/stores/set-up.ts';

// As a quorum.
const lacks = { transfer: false, edges: false };
const setUp = coreTests((store) => Object.assign(store, { capabilities: { ...store.capabilities, ...lacks } }));

/** A hold that a branch, which has just ended, has left to its job. */
function leftBy(job: Job): Promise<Hold> {
  return job.in(() => lock.run('other', () => lock.acquire('key')));
}

/** Acquires the key, and leaves it when the gate is opened. */
async function leave(go: Promise<void>): Promise<Hold> {
  const hold = await lock.acquire('key');
  await go;
  return hold;
}

const leaveBranch = (go: Promise<void>): Promise<Hold> => lock.run('other', () => leave(go));

/** A job with a branch that holds the key, and leaves it at `end`. */
async function leaving(how: (go: Promise<void>) => Promise<Hold> = leaveBranch) {
  const setup = setUp();
  const job = setup.job();
  const go = gate();
  const left = outcomeOf(job.in(() => how(go)));
  await setup.clock.settle();
  const end = async (): Promise<void> => {
    go.open();
    await left.settled;
    await setup.clock.settle();
  };
  return { setup, job, left, end };
}

describe('If the store can’t pass on holds, one that its branch has left', () => {
  it.each([
    ['', () => {}],
    [', although it has called services', () => void traceHeaders()],
  ])('is entered by nested calls of its request, one branch after the other%s', async (_, call) => {
    const setup = setUp();
    const job = setup.job();
    await leftBy(job);
    job.in(call);
    const crowd = crowdOf(setup);
    await job.in(() => Promise.all([lock.run('key', crowd.work), lock.run('key', crowd.work), lock.acquire('key')]));
    expect(crowd.most).toBe(1);
  });

  it('is not entered by a branch that waits for another one in it, once the branch around has released it', async () => {
    const setup = setUp();
    const job = setup.job();
    const hold = await leftBy(job);
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

  it.each<[string, (go: Promise<void>) => Promise<Hold>]>([
    ['`run` ends', leaveBranch],
    ['`runAll` ends', (go) => lock.runAll(['other', 'third'], () => leave(go))],
    ['two nested branches end', (go) => lock.run('other', () => lock.run('third', () => leave(go)))],
    ['a branch ends that has it twice', (go) => lock.run('other', () => lock.acquire('key').then(() => leave(go)))],
    ['a branch fails', (go) => lock.run('other', () => leave(go).then(() => Promise.reject(new Error('planned'))))],
  ])('is entered, one branch after the other, by those that wait for it in the store when %s', async (_, how) => {
    const { setup, job, end } = await leaving(how);
    const work = gate();
    const log: string[] = [];
    const enter = (name: string) => async (): Promise<void> => {
      log.push(name);
      await work;
    };
    const first = outcomeOf(job.in(() => lock.run('key', enter('first'))));
    const second = outcomeOf(job.in(() => lock.run('key', enter('second'))));
    const own = outcomeOf(job.in(() => lock.acquire('key').then(enter('own'))));
    await setup.clock.advance(3_000);
    expect(log).toEqual([]);
    await end();
    await setup.clock.advance(3_000);
    expect(log).toEqual(['first']);
    work.open();
    await setup.clock.settle();
    expect(log).toEqual(['first', 'second', 'own']);
    expect([first.state, second.state, own.state]).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
  });

  it('is entered by a branch whose call was on its way to the store when it was left', async () => {
    const { setup, job, end } = await leaving();
    const reply = setup.store.gate('acquire');
    const waiter = outcomeOf(job.in(() => lock.run('key', async () => 'inside')));
    await end();
    reply();
    await setup.clock.settle();
    expect(waiter.value).toBe('inside');
  });

  it('is entered by waiters that leave nothing behind: later nested calls of the request ask no store', async () => {
    const { setup, job, left, end } = await leaving();
    const pause = (): Promise<void> => new Promise((resolve) => setup.clock.after(10, resolve));
    const waiters = outcomeOf(job.in(() => Promise.all([1, 2, 3].map(() => lock.run('key', pause)))));
    await setup.clock.settle();
    await end();
    await setup.clock.advance(100);
    expect(waiters.state).toBe('fulfilled');
    await left.value?.release();
    await job.in(() => lock.acquire('key'));
    const count = setup.store.count('acquire');
    await job.in(() => lock.run('key', async () => {}));
    expect(setup.store.count('acquire')).toBe(count);
  });

  it('is entered by waiters that no longer count as waiting: a branch may wait for what they hold besides', async () => {
    const { setup, job, end } = await leaving();
    const work = gate();
    const waiter = outcomeOf(
      job.in(() =>
        lock.run('third', async () => {
          await lock.run('key', async () => {});
          await work;
        }),
      ),
    );
    await setup.clock.settle();
    await end();
    const second = outcomeOf(job.in(() => lock.run('key', () => lock.run('third', async () => 'inside'))));
    await setup.clock.settle();
    expect([waiter.state, second.error]).toEqual(['pending', undefined]);
    work.open();
    await setup.clock.settle();
    expect(second.value).toBe('inside');
  });

  it('is not awaited by branches that wait for each other: the one that comes last gets a `DeadlockError`', async () => {
    const { setup, job, end } = await leaving();
    const both = outcomeOf(
      job.in(() => lock.run('x', () => Promise.all([lock.acquire('key'), lock.acquire('third')]))),
    );
    const second = outcomeOf(job.in(() => lock.run('third', () => lock.run('key', async () => {}))));
    await setup.clock.settle();
    await end();
    expect(second.error).toMatchObject({ code: 'ERR_LOCK_DEADLOCK' });
    expect(both.state).toBe('fulfilled');
  });

  it('is not entered while a branch that left it has an acquire on its way, which may be granted already', async () => {
    const setup = setUp();
    const job = setup.job();
    let [reply, late] = [(): void => {}, outcomeOf<Hold>(Promise.reject())];
    await job.in(() =>
      lock.run('other', async () => {
        reply = setup.store.gate('acquire');
        late = outcomeOf(lock.acquire('key'));
        await lock.run('third', () => lock.acquire('key'));
      }),
    );
    const waiter = outcomeOf(job.in(() => lock.run('key', async () => 'inside')));
    await setup.clock.settle();
    reply();
    await setup.clock.settle();
    expect([waiter.state, late.value?.isHeld()]).toEqual(['pending', true]);
    await late.value?.release();
    await setup.clock.settle();
    expect(waiter.value).toBe('inside');
  });

  it('is entered by all readers that wait for it', async () => {
    const { setup, job, end } = await leaving();
    const work = gate();
    let inside = 0;
    const enter = async (): Promise<void> => {
      inside += 1;
      await work;
    };
    const read = (): Promise<void> => lock.run('key', enter, { mode: 'read' });
    const readers = outcomeOf(Promise.all([1, 2].map(() => job.in(read))));
    await setup.clock.settle();
    await end();
    expect(inside).toBe(2);
    work.open();
    await readers.settled;
  });

  it('is not entered by waiters with other options, nor by those of other requests', async () => {
    const { setup, job, left, end } = await leaving();
    const own = ([false, 'request'] as const).map((reentrant) =>
      outcomeOf(job.in(() => lock.run('key', async () => 'inside', { reentrant }))),
    );
    const stranger = outcomeOf(setup.job().in(() => lock.run('key', async () => 'inside')));
    await setup.clock.settle();
    await end();
    expect([...own, stranger].map(({ state }) => state)).toEqual(['pending', 'pending', 'pending']);
    await left.value?.release();
    await setup.clock.settle();
    expect([...own, stranger].map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
  });

  it('is entered in turn while the `Locks` closes, and not after `drainMs`: its waiters are refused then', async () => {
    const { setup, job, end } = await leaving();
    const [turn, work] = [gate(), gate()];
    const waits = [turn, work, work].map((until) => outcomeOf(job.in(() => lock.run('key', () => until))));
    await setup.clock.settle();
    await end();
    const closing = setup.locks.close({ drainMs: 1_000 });
    turn.open();
    await setup.clock.settle();
    expect(waits.map(({ state }) => state)).toEqual(['fulfilled', 'pending', 'pending']);
    await setup.clock.advance(1_000);
    expect(waits[2]?.state).toBe('rejected');
    work.open();
    await waits[1]?.settled;
    await job.end();
    await closing;
    expect(waits[2]?.error).toMatchObject({ code: 'ERR_LOCK_CLOSED' });
  });

  it('is not entered if its branch has called a service, which may still be in the lock', async () => {
    const setup = setUp();
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
