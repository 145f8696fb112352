import {
  type DeadlockError,
  getLock,
  type Hold,
  LockConfigError,
  LockLostError,
  lock,
} from '../../../src/core/index.ts';
import { checkedName } from '../../../src/core/model/key.ts';
import { pathOf } from '../../support/path-of.ts';
import {
  coreTests,
  type Job,
  type Outcome,
  outcomeOf,
  queued,
  type Setup,
  taken,
} from '../../support/stores/set-up.ts';

const setUp = coreTests();

const read = { mode: 'read' } as const;

/** An acquire of `key` in a job, as far as it comes without time passing. */
async function asked(setup: Setup, { in: inJob }: Job, options: object = {}): Promise<Outcome<Hold>> {
  return setup.clock.settled(outcomeOf(inJob(() => lock.acquire('key', options))));
}

describe('Readers', () => {
  it('Any number of readers hold the key at once, and a writer waits for the last of them', async () => {
    const setup = setUp();
    const readers = [await taken(setup, read), await taken(setup, read), await taken(setup, read)];
    const writer = await queued(setup);
    for (const reader of readers) {
      expect(writer.state).toBe('pending');
      expect(reader.isHeld()).toBe(true);
      await reader.release();
    }
    await setup.clock.settle();
    expect(writer.value?.isHeld()).toBe(true);
  });

  it('Readers are renewed one by one, and lost one by one', async () => {
    const setup = setUp();
    const [fixed, renewed] = [await taken(setup, { ...read, renew: false }), await taken(setup, read)];
    await setup.clock.advance(31_000);
    expect([fixed.isHeld(), renewed.isHeld()]).toEqual([false, true]);
    expect((await queued(setup)).state).toBe('pending');
  });

  it('Readers are refused with a LockConfigError by a store without modes, before it is called', async () => {
    const setup = setUp();
    Object.assign(setup.store, { capabilities: { ...setup.store.capabilities, modes: false } });
    await expect(taken(setup, read)).rejects.toThrow(LockConfigError);
    await expect(taken(setup, read)).rejects.toThrow(/lacks them \(`capabilities.modes`\)/);
    expect(setup.store.count('acquire')).toBe(0);
    expect((await taken(setup)).isHeld()).toBe(true);
  });
});

describe('A scope that holds to write', () => {
  it('A scope that writes re-enters to read without a store call, and shares the lease', async () => {
    const setup = setUp();
    const job = setup.job();
    const writing = await asked(setup, job);
    const calls = setup.store.calls.length;
    const reading = await asked(setup, job, read);
    expect(setup.store.calls).toHaveLength(calls);
    expect(reading.value?.fence).toBe(writing.value?.fence);
    await writing.value?.release();
    // Its grant is to write until its last hold is released.
    expect((await queued(setup, read)).state).toBe('pending');
  });
});

describe('A scope that holds to read', () => {
  it('A scope that reads becomes the writer by its own hold, with a fence that no reader alongside it ever had', async () => {
    const setup = setUp();
    const { events, store } = setup;
    const entered = events('entered');
    const job = setup.job('own');
    const reading = await asked(setup, job, read);
    const waiter = await queued(setup);
    const writing = await asked(setup, job);
    expect(store.count('acquire')).toBe(3);
    expect(writing.value!.fence).toBeGreaterThan(reading.value!.fence);
    expect(entered).toEqual([
      {
        key: 'key',
        category: undefined,
        mode: 'write',
        traceId: 'own',
        branch: '',
        holdId: expect.any(String),
        fence: writing.value!.fence,
        otherHolds: 1,
        isOverlap: false,
      },
    ]);
    expect(job.in(() => getLock('key').holdCount())).toBe(2);
    expect(waiter.state).toBe('pending');
  });

  it('A scope that reads and writes keeps both leases by renewals, each with the fence of its own grant', async () => {
    const setup = setUp();
    const job = setup.job();
    const [reading, writing] = [await asked(setup, job, read), await asked(setup, job)];
    await setup.clock.advance(65_000);
    expect([reading.value?.isHeld(), writing.value?.isHeld()]).toEqual([true, true]);
    const renewals = setup.store.calls.filter(({ operation }) => operation === 'renew');
    const fences = new Set(renewals.map(({ terms }) => (terms as { fence: number }).fence));
    expect(fences).toEqual(new Set([reading.value?.fence, writing.value?.fence]));
  });

  it('A scope that releases its write hold reads on: waiting readers are granted, and no writer', async () => {
    const setup = setUp();
    const job = setup.job();
    const reading = await asked(setup, job, read);
    const writing = await asked(setup, job);
    const [reader, writer] = [await queued(setup, read), await queued(setup)];
    await writing.value?.release();
    await setup.clock.settle();
    expect([reading.value?.isHeld(), reader.value?.isHeld(), writer.state]).toEqual([true, true, 'pending']);
    expect(job.in(() => [getLock('key').isHeld(), getLock('key').holdCount()])).toEqual([true, 1]);
  });

  it('A scope that reads and writes re-enters the hold of the mode that it asks for', async () => {
    const setup = setUp();
    const job = setup.job();
    await asked(setup, job, read);
    const outer = await asked(setup, job);
    const calls = setup.store.calls.length;
    const [reading, writing] = [await asked(setup, job, read), await asked(setup, job)];
    expect(setup.store.calls).toHaveLength(calls);
    expect(writing.value?.fence).toBe(outer.value?.fence);
    expect(reading.value?.fence).toBeLessThan(outer.value!.fence);
    await outer.value?.release();
    expect(setup.store.count('release')).toBe(0);
    await writing.value?.release();
    expect(setup.store.count('release')).toBe(1);
    expect(reading.value?.isHeld()).toBe(true);
  });

  it('A scope that reads alongside others gets a DeadlockError at once when it asks to write; nothing is queued, and it reads on', async () => {
    const setup = setUp();
    const other = await taken(setup, read);
    const job = setup.job('own');
    const reading = await asked(setup, job, read);
    const upgrade = await asked(setup, job);
    expect(upgrade.error).toMatchObject({
      code: 'ERR_LOCK_DEADLOCK',
      key: 'key',
      status: 409,
      cycle: [{ traceId: 'own', key: 'key' }],
    });
    expect(await job.in(() => lock.tryAcquire('key'))).toBeNull();
    expect((await setup.store.inspect('key')).waiters).toEqual([]);
    expect([reading.value?.isHeld(), other.isHeld()]).toEqual([true, true]);
    await other.release();
    expect((await asked(setup, job)).state).toBe('fulfilled');
  });

  it('Two scopes that read and both ask to write both get an error, and the one whose other leaves gets the key', async () => {
    const setup = setUp();
    const jobs = [setup.job(), setup.job()] as const;
    const reading = [await asked(setup, jobs[0], read), await asked(setup, jobs[1], read)];
    const upgrades = [await asked(setup, jobs[0]), await asked(setup, jobs[1])];
    expect(upgrades.map(({ error }) => (error as DeadlockError).code)).toEqual([
      'ERR_LOCK_DEADLOCK',
      'ERR_LOCK_DEADLOCK',
    ]);
    await reading[0]?.value?.release();
    expect((await asked(setup, jobs[1])).state).toBe('fulfilled');
  });

  it('A scope that lost its read hold gets an error when it asks to write: nothing is built on a lost hold', async () => {
    const setup = setUp();
    const job = setup.job();
    await asked(setup, job, { ...read, renew: false, leaseMs: 1_000 });
    setup.clock.skip(2_000);
    const calls = setup.store.count('acquire');
    expect((await asked(setup, job)).error).toBeInstanceOf(LockLostError);
    expect(setup.store.count('acquire')).toBe(calls);
  });

  it('A scope that lost its read hold while its write hold stands gets an error until the read hold is released', async () => {
    const setup = setUp();
    const job = setup.job();
    const reading = await asked(setup, job, { ...read, renew: false, leaseMs: 1_000 });
    const writing = await asked(setup, job);
    await setup.clock.advance(1_000);
    expect([reading.value?.isHeld(), writing.value?.isHeld()]).toEqual([false, true]);
    expect(job.in(() => [getLock('key').holdCount(), getLock('key').isHeld()])).toEqual([1, true]);
    expect((await asked(setup, job)).error).toBeInstanceOf(LockLostError);
    await reading.value?.release();
    expect((await asked(setup, job)).state).toBe('fulfilled');
  });

  it('A scope that loses its read hold while it becomes the writer gets an error, and the key is free', async () => {
    const setup = setUp();
    const job = setup.job();
    await asked(setup, job, { ...read, renew: false, leaseMs: 300 });
    setup.store.next('acquire', { kind: 'lateCall', ms: 500 }, { kind: 'lateCall', ms: 500 });
    const upgrades = [await asked(setup, job), outcomeOf(job.in(() => lock.tryAcquire('key')))];
    await setup.clock.advance(400);
    await (await taken(setup)).release();
    await setup.clock.advance(100);
    for (const { error } of upgrades) expect(error).toBeInstanceOf(LockLostError);
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A scope that releases its read hold while it becomes the writer becomes it all the same', async () => {
    const setup = setUp();
    const job = setup.job();
    const reading = await asked(setup, job, read);
    const open = setup.store.gate('acquire');
    const upgrade = await asked(setup, job);
    await reading.value?.release();
    open();
    await setup.clock.settle();
    expect(upgrade.value?.isHeld()).toBe(true);
  });

  it('A scope that reads for itself alone becomes the writer for itself alone', async () => {
    const setup = setUp();
    const job = setup.job('own');
    const reading = await asked(setup, job, { ...read, reentrant: 'request' });
    const writing = await asked(setup, job);
    const { holds } = await setup.store.inspect(checkedName('key', undefined).id);
    expect(new Set(holds.map(({ owner }) => owner)).size).toBe(1);
    expect(holds[0]?.owner).not.toBe('own');
    expect([reading, writing].map(({ value }) => pathOf(value))).toEqual(['own', 'own']);
  });

  it('A scope that reads for its trace is refused to write for itself alone: it would wait for itself', async () => {
    const setup = setUp();
    const job = setup.job();
    await asked(setup, job, read);
    expect((await asked(setup, job, { reentrant: 'request' })).error).toBeInstanceOf(LockConfigError);
  });

  it('A scope that reads and writes needs one release by key for each, the newest first; a third is a LockNotHeldError', async () => {
    const setup = setUp();
    const job = setup.job();
    const [reading, writing] = [await asked(setup, job, read), await asked(setup, job)];
    await job.in(() => lock.release('key'));
    expect([reading.value?.isHeld(), writing.value?.isHeld()]).toEqual([true, false]);
    await job.in(() => lock.release('key'));
    await expect(job.in(() => lock.release('key'))).rejects.toMatchObject({ code: 'ERR_LOCK_NOT_HELD' });
  });
});

describe('Scopes of one trace in both modes', () => {
  it('Scopes of one trace in both modes cause an event in the process that was granted', async () => {
    const here = setUp();
    const there = here.sibling();
    const [entered, elsewhere] = [here.events('entered'), there.events('entered')];
    await asked(here, here.job('fan'));
    expect((await asked(there, there.job('fan'), read)).state).toBe('fulfilled');
    await asked(there, there.job('fan'));
    expect(entered).toEqual([]);
    expect(elsewhere).toMatchObject([
      { key: 'key', traceId: 'fan', branch: '', otherHolds: 1 },
      { key: 'key', traceId: 'fan', branch: '', otherHolds: 2 },
    ]);
  });

  it('Scopes of one trace cause no such event if the key is free, in local re-entry, or alongside other readers', async () => {
    const setup = setUp();
    const entered = setup.events('entered');
    const job = setup.job();
    await asked(setup, job, read);
    await asked(setup, job, read);
    await asked(setup, setup.job(), read);
    expect(entered).toEqual([]);
  });
});

describe('Priority of an acquire', () => {
  it('Priority puts a waiter before others; each degree counts like ten seconds of waiting', async () => {
    const setup = setUp();
    const holder = await taken(setup, { maxHoldMs: 100_000 });
    const patient = { waitMs: 100_000 };
    const early = await queued(setup, patient);
    await setup.clock.advance(9_999);
    const late = await queued(setup, patient);
    const before = await queued(setup, { ...patient, priority: 1 });
    await setup.clock.advance(2);
    const behind = await queued(setup, { ...patient, priority: 1 });
    const { waiters } = await setup.job().in(() => getLock('key').inspect());
    expect(waiters.map(({ priority, waitedMs }) => [priority, waitedMs])).toEqual([
      [1, 2],
      [0, 10_001],
      [1, 0],
      [0, 2],
    ]);
    let last: Hold | undefined = holder;
    for (const next of [before, early, behind, late]) {
      await last?.release();
      await setup.clock.settle();
      last = next.value;
      expect(last?.isHeld()).toBe(true);
    }
  });
});

describe('list', () => {
  it('list names locks by prefix and category, with their state, a page at a time', async () => {
    const setup = setUp();
    const job = setup.job('own');
    const keys = ['order:1', 'order:2', 'order:3', 'stock 1', 'a|b', '{}%'];
    for (const key of keys) await job.in(() => lock.acquire(key, read));
    await job.in(() => lock.acquire('order:4', { category: 'shop|1' }));
    const all: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await setup.locks.list({ limit: 2, cursor });
      expect(page.locks.length).toBeLessThanOrEqual(2);
      all.push(...page.locks.map(({ key }) => key));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(all.sort()).toEqual([...keys, 'order:4'].sort());
    const named = async (options: object) => (await setup.locks.list(options)).locks.map(({ key }) => key);
    expect(await named({ prefix: 'order:' })).toEqual(['order:1', 'order:2', 'order:3', 'order:4']);
    expect(await named({ prefix: 'stock ' })).toEqual(['stock 1']);
    expect(await named({ prefix: 'a|' })).toEqual(['a|b']);
    expect(await named({ category: 'shop|1' })).toEqual(['order:4']);
    expect(await named({ category: 'shop' })).toEqual([]);
    expect((await setup.locks.list({ category: 'shop|1' })).locks[0]).toMatchObject({ category: 'shop|1' });
    expect((await setup.locks.list({ prefix: 'order:1' })).locks[0]).toMatchObject({
      category: undefined,
      holds: [{ traceId: 'own', branch: '', mode: 'read' }],
      waiters: [],
    });
  });

  it('list refuses invalid options, and a store that can’t list', async () => {
    const setup = setUp();
    for (const options of [{ limit: 0 }, { limit: 1001 }, { prefix: 5 }, { cursor: '' }, { all: true }]) {
      await expect(setup.locks.list(options as object)).rejects.toThrow(LockConfigError);
    }
    Object.assign(setup.store, { list: undefined });
    await expect(setup.locks.list()).rejects.toThrow(/one that lacks `list`/);
  });
});
