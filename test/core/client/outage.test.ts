import type { Link } from '../../../src/core/base/link.ts';
import { LockTimeoutError, lock } from '../../../src/core/index.ts';
import type { LockStore } from '../../../src/core/model/store.ts';
import { coreTests, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:6379'), { code: 'ECONNREFUSED' });

/** A client's connection, lost and opened as a test says. */
class FakeLink implements Link {
  isUp = true;
  isEnded = false;
  error: Error | undefined;
  readonly listeners = new Set<() => void>();

  onceUp(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  down(error: Error = refused): void {
    this.isUp = false;
    this.error = error;
  }

  up(): void {
    this.isUp = true;
    const listeners = [...this.listeners];
    this.listeners.clear();
    for (const listener of listeners) listener();
  }
}

/** The processes of a test share the store, and its link. */
const setUp = coreTests((store) => Object.assign(store, { link: (store as LockStore).link ?? new FakeLink() }));
const linkOf = ({ store }: Setup) => (store as unknown as { link: FakeLink }).link;
const acquiring = (setup: Setup, key = 'key') => outcomeOf(setup.job().in(() => lock.acquire(key)));

/** A `Locks` that has found out that its server is gone. */
async function inOutage(setup: Setup): Promise<FakeLink> {
  const link = linkOf(setup);
  link.down();
  acquiring(setup, 'first');
  await setup.clock.advance(2_000);
  return link;
}

describe('A store whose client has no connection', () => {
  it('An acquire waits for a connection that is lost for a moment, and no event is emitted', async () => {
    const setup = setUp();
    const events = [setup.events('storeDown'), setup.events('storeUp'), setup.events('storeError')];
    const link = linkOf(setup);
    link.down();
    const acquire = acquiring(setup);
    await setup.clock.advance(1_999);
    expect([acquire.state, setup.store.count('acquire')]).toEqual(['pending', 0]);
    link.up();
    await setup.clock.settle();
    expect(acquire.state).toBe('fulfilled');
    expect(events).toEqual([[], [], []]);
    expect(link.listeners.size).toBe(0);
  });

  it('An acquire fails after `storeTimeoutMs` with the client’s own error, and neither it nor a release is ever sent', async () => {
    const setup = setUp();
    const link = linkOf(setup);
    link.down();
    const acquire = acquiring(setup);
    await setup.clock.advance(2_000);
    expect(acquire.error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied', cause: refused, key: 'key' });
    link.up();
    await setup.clock.advance(60_000);
    expect(setup.store.calls.map(({ operation }) => operation)).not.toContain('acquire');
    expect(setup.store.calls.map(({ operation }) => operation)).not.toContain('release');
  });

  it('Acquires fail at once when the outage is known, those that wait as well', async () => {
    const setup = setUp();
    const link = linkOf(setup);
    link.down();
    const first = acquiring(setup);
    await setup.clock.advance(1_500);
    const second = acquiring(setup, 'other');
    await setup.clock.advance(500);
    const third = acquiring(setup, 'another');
    await setup.clock.settle();
    expect([first.state, second.state, third.state]).toEqual(['rejected', 'rejected', 'rejected']);
    expect(third.error).toMatchObject({ outcome: 'not-applied', cause: refused });
    link.up();
    expect(await setup.job().in(() => lock.acquire('key'))).toBeDefined();
  });

  it('An acquire fails at once if the application has closed the client', async () => {
    const setup = setUp();
    const link = linkOf(setup);
    link.down();
    link.isEnded = true;
    const acquire = acquiring(setup);
    await setup.clock.settle();
    expect(acquire.error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied' });
    link.isEnded = false;
    link.up();
  });

  it('One event is emitted for an outage, one for its end, and one for each acquire that failed', async () => {
    const setup = setUp();
    const [downs, ups, errors] = [setup.events('storeDown'), setup.events('storeUp'), setup.events('storeError')];
    const link = await inOutage(setup);
    expect(downs).toEqual([{ error: refused }]);
    for (let n = 0; n < 199; n++) acquiring(setup, `key-${n}`);
    await setup.clock.advance(10_000);
    expect(errors.map(({ operation }) => operation)).toEqual(Array(200).fill('acquire'));
    expect(ups).toEqual([]);
    link.up();
    await setup.clock.advance(10_000);
    expect([downs.length, ups, errors.length]).toEqual([1, [{ downMs: 10_000, failedCalls: 200 }], 200]);
  });

  it('A second outage is reported as the first was', async () => {
    const setup = setUp();
    const [downs, ups] = [setup.events('storeDown'), setup.events('storeUp')];
    for (let n = 0; n < 2; n++) (await inOutage(setup)).up();
    expect([downs.length, ups.length]).toEqual([2, 2]);
  });

  it('A release waits for the connection: it is sent once, at once when that is there, however long the outage was', async () => {
    const setup = setUp();
    const errors = setup.events('storeError');
    const hold = await taken(setup, { leaseMs: 30_000 });
    const link = await inOutage(setup);
    const release = outcomeOf(hold.release());
    await setup.clock.advance(10_000);
    expect(release.error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied' });
    expect(errors.filter(({ operation }) => operation === 'release')).toHaveLength(1);
    expect(setup.store.count('release')).toBe(0);
    link.up();
    await setup.clock.settle();
    expect(setup.store.count('release')).toBe(1);
    expect((await setup.store.inspect('key')).holds).toEqual([]);
  });

  it('A release waits for the connection no longer than its lease can last', async () => {
    const setup = setUp();
    const hold = await taken(setup, { leaseMs: 5_000 });
    const link = await inOutage(setup);
    outcomeOf(hold.release());
    await setup.clock.advance(60_000);
    link.up();
    await setup.clock.advance(60_000);
    expect(setup.store.count('release')).toBe(0);
  });

  it('Renewals go on when the connection is back, and emit no event of the outage', async () => {
    const setup = setUp();
    const errors = setup.events('storeError');
    const hold = await taken(setup, { leaseMs: 30_000 });
    const link = linkOf(setup);
    link.down();
    await setup.clock.advance(15_000);
    expect([hold.isHeld(), setup.store.count('renew')]).toEqual([true, 0]);
    link.up();
    await setup.clock.advance(2_000);
    expect(setup.store.count('renew')).toBe(1);
    expect(hold.remainingMs()).toBeGreaterThan(25_000);
    expect(errors).toEqual([]);
  });

  it('A waiter stays in the queue through an outage that ends in time', async () => {
    const setup = setUp();
    const errors = setup.events('storeError');
    const first = await taken(setup.sibling(), { leaseMs: 60_000 });
    const waiter = await queued(setup, { waitMs: 60_000 });
    const link = await inOutage(setup);
    await setup.clock.advance(5_000);
    link.up();
    outcomeOf(first.release());
    await setup.clock.advance(2_000);
    expect(waiter.value?.isHeld()).toBe(true);
    // Of the acquire that found the outage out.
    expect(errors).toHaveLength(1);
  });

  it('A waiter whose time ends in an outage fails with the store’s error, and is taken out of the queue afterwards', async () => {
    const setup = setUp();
    await taken(setup.sibling(), { leaseMs: 60_000 });
    const waiter = await queued(setup, { waitMs: 6_000 });
    const link = await inOutage(setup);
    await setup.clock.advance(4_000);
    expect(waiter.error).toMatchObject({ code: 'ERR_LOCK_STORE', cause: refused });
    link.up();
    await setup.clock.settle();
    expect((await setup.store.inspect('key')).waiters).toEqual([]);
  });

  it('Every grant ends in one event, also if the store lost its data while the release was tried again', async () => {
    const setup = setUp();
    const [granted, released, lost] = [setup.events('granted'), setup.events('released'), setup.events('lost')];
    const holds = [await taken(setup), await setup.job().in(() => lock.acquire('other'))];
    const link = linkOf(setup);
    link.down();
    const releases = holds.map((hold) => outcomeOf(hold.release()));
    await setup.clock.advance(1_000);
    await setup.store.forget();
    link.up();
    await setup.clock.advance(60_000);
    expect(releases.map(({ state }) => state)).not.toContain('pending');
    const ends = [...released, ...lost].map(({ holdId }) => holdId);
    expect(ends.sort()).toEqual(granted.map(({ holdId }) => holdId).sort());
  });

  it('A `Locks` that is closed in an outage leaves no listener on the client', async () => {
    const setup = setUp();
    const link = await inOutage(setup);
    const closing = setup.locks.close({ drainMs: 0 });
    await setup.clock.advance(10_000);
    await closing;
    expect(link.listeners.size).toBe(0);
    link.up();
  });
});

describe('A store that does not report whether it has a connection', () => {
  const plain = coreTests();

  it('A call that finds no server begins an outage, and a reply ends it', async () => {
    const setup = plain();
    const [downs, ups] = [setup.events('storeDown'), setup.events('storeUp')];
    const fault = { kind: 'rejected', error: new Error('no pool', { cause: refused }) } as const;
    for (const operation of ['acquire', 'release'] as const) setup.store.always(operation, fault);
    const failed = [acquiring(setup), acquiring(setup)];
    await setup.clock.advance(100);
    expect(failed.map(({ state }) => state)).toEqual(['rejected', 'rejected']);
    expect(downs).toEqual([{ error: refused }]);
    await setup.clock.advance(900);
    setup.store.heal();
    await setup.job().in(() => lock.run('other', () => {}));
    expect(ups).toHaveLength(1);
    expect(ups[0]!.downMs).toBeGreaterThanOrEqual(1_000);
    // The releases that follow are calls, too.
    expect(ups[0]!.failedCalls).toBeGreaterThan(2);
  });

  it.each([
    ['a refusal by the server', Object.assign(new Error('denied'), { code: '42501' })],
    ['an error without a code', new Error('odd')],
  ])('A call that fails for another reason, such as %s, is no outage', async (_, error) => {
    const setup = plain();
    const downs = setup.events('storeDown');
    setup.store.next('acquire', { kind: 'rejected', error });
    const failed = acquiring(setup);
    await setup.clock.advance(100);
    expect(failed.error).toMatchObject({ cause: error });
    expect(failed.error).not.toBeInstanceOf(LockTimeoutError);
    expect(downs).toEqual([]);
  });
});
