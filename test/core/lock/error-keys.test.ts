import { type AcquireOptions, currentTrace, getLock, type Hold, lock } from '../../../src/core/index.ts';
import { acquire } from '../../../src/core/lock/acquire.ts';
import { lockName } from '../../../src/core/model/key.ts';
import type { AcquireReply } from '../../../src/core/model/store.ts';
import type { Scope } from '../../../src/core/scope/scope.ts';
import { coreTests, type Job, type Outcome, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const key = 'secret:key';
const category = 'secret-category';
const down = { kind: 'rejected', error: new Error('ECONNREFUSED redis://user:secret@host') } as const;
const short = { leaseMs: 1_000, renew: false } as const;

afterEach(() => jest.restoreAllMocks());

/** What may be told to clients: all that can be seen of an error, but for its cause and the places in its stack. */
function shown(error: Error): string {
  const { message, name } = error;
  return `${name} ${message} ${String(error)} ${JSON.stringify(error)} ${error.stack?.split('\n    at ')[0]}`;
}

const jobOf = (setup: Setup): Job => setup.job('secret-trace');

/** Somebody else's hold on the key. */
const taken = (setup: Setup, options?: AcquireOptions): Promise<Hold> =>
  setup.job('secret-other').in(() => lock.acquire(key, { category, ...options }));

/** An acquire of the key, as far as it comes in some time. */
async function acquired(
  setup: Setup,
  options?: AcquireOptions,
  { ms = 0, own = jobOf(setup) } = {},
): Promise<Outcome<Hold>> {
  const outcome = outcomeOf(own.in(() => lock.acquire(key, { category, ...options })));
  await setup.clock.advance(ms);
  return outcome;
}

/** What an acquire fails with to which the store answers so. */
async function answered(setup: Setup, reply: Pick<AcquireReply, 'status'>): Promise<unknown> {
  const rest = { leaseRemainingMs: 1, position: 1, nowMs: 0, claims: [] };
  jest.spyOn(setup.store, 'acquire').mockResolvedValueOnce({ ...rest, ...reply } as AcquireReply);
  return (await acquired(setup)).error;
}

const thrown = (call: () => unknown): unknown => {
  try {
    return call();
  } catch (error) {
    return error;
  }
};

const failed = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

/** A test of what fails in the core: what its error is, and how it comes to that. */
function itShows(what: string, is: object, fail: (setup: Setup) => Promise<unknown>): void {
  it(`The error of ${what} shows its key and category to loggers, and in its message neither those nor a trace nor what the store said`, async () => {
    const error = (await fail(setUp())) as Error;
    expect(error).toMatchObject(is);
    expect({ ...error }).toMatchObject({ key, category });
    expect(JSON.stringify({ ...error, key: '', category: '' })).not.toContain('secret');
    expect(shown(error)).not.toContain('secret');
  });
}

describe('What an error shows', () => {
  itShows(
    'an acquire that has waited',
    { code: 'ERR_LOCK_TIMEOUT', waitedMs: 100, retryAfterMs: 10_000 },
    async (setup) => {
      await taken(setup);
      return (await acquired(setup, { waitMs: 100 }, { ms: 100 })).error;
    },
  );

  itShows(
    'an acquire that does not wait',
    { code: 'ERR_LOCK_TIMEOUT', waitedMs: 0, retryAfterMs: 10_000 },
    async (setup) => {
      await taken(setup);
      return (await acquired(setup, { waitMs: 0 })).error;
    },
  );

  itShows(
    'a batch, by the key that was not free',
    { code: 'ERR_LOCK_TIMEOUT', waitedMs: 200, retryAfterMs: 10_000 },
    async (setup) => {
      await taken(setup);
      const outcome = outcomeOf(jobOf(setup).in(() => lock.acquireAll(['another', key], { category, waitMs: 200 })));
      await setup.clock.advance(200);
      return outcome.error;
    },
  );

  itShows('one too many in the queue of a key', { code: 'ERR_LOCK_LIMIT', retryAfterMs: 2 }, (setup) =>
    answered(setup, { status: 'full' }),
  );

  itShows('one too many in the queues of a process', { code: 'ERR_LOCK_LIMIT', retryAfterMs: 1_000 }, async (setup) => {
    const small = setup.sibling({ maxWaiters: 1 });
    await taken(setup);
    await acquired(small);
    return (await acquired(small)).error;
  });

  itShows('one that re-enters too often', { code: 'ERR_LOCK_LIMIT', retryAfterMs: 1_000 }, async (setup) => {
    const own = jobOf(setup.sibling({ maxReentry: 1 }));
    await acquired(setup, {}, { own });
    return (await acquired(setup, {}, { own })).error;
  });

  itShows('one that comes when its Locks is closed', { code: 'ERR_LOCK_CLOSED' }, async (setup) => {
    const own = jobOf(setup);
    await setup.locks.close();
    return (await acquired(setup, {}, { own })).error;
  });

  itShows('one that waits when its Locks is closed', { code: 'ERR_LOCK_CLOSED' }, async (setup) => {
    const other = setup.sibling();
    await taken(other);
    const outcome = await acquired(setup);
    await setup.locks.close();
    return outcome.error;
  });

  itShows('one that is on its way when its Locks is closed', { code: 'ERR_LOCK_CLOSED' }, async (setup) => {
    setup.store.next('acquire', { kind: 'lateReply', ms: 100 });
    const outcome = await acquired(setup);
    void setup.locks.close();
    await setup.clock.advance(100);
    return outcome.error;
  });

  itShows(
    'one with a signal that is aborted',
    { code: 'ERR_LOCK_ABORTED', cause: 'why' },
    async (setup) => (await acquired(setup, { signal: AbortSignal.abort('why') })).error,
  );

  itShows('that of a guard whose client has left', { code: 'ERR_LOCK_ABORTED', cause: 'gone' }, async (setup) => {
    const scope = jobOf(setup).in(currentTrace) as Scope;
    scope.abort('gone');
    return thrown(() => acquire(scope.root, lockName(key, category), {}, 'guard'));
  });

  itShows(
    'one that waits in a job that is told to stop',
    { code: 'ERR_LOCK_ABORTED', cause: 'stop' },
    async (setup) => {
      await taken(setup);
      const own = jobOf(setup);
      const outcome = await acquired(setup, {}, { own });
      (own.in(currentTrace) as Scope).stopOn([AbortSignal.abort('stop')]);
      await setup.clock.settle();
      return outcome.error;
    },
  );

  itShows('one in a scope that is over', { code: 'ERR_LOCK_SCOPE' }, async (setup) => {
    const own = jobOf(setup);
    await own.end();
    return (await acquired(setup, {}, { own })).error;
  });

  itShows('one in no scope', { code: 'ERR_LOCK_SCOPE' }, () => failed(lock.acquire(key, { category })));

  itShows('one that reads beside others and asks to write', { code: 'ERR_LOCK_DEADLOCK' }, async (setup) => {
    await taken(setup, { mode: 'read' });
    const own = jobOf(setup);
    await acquired(setup, { mode: 'read' }, { own });
    return (await acquired(setup, {}, { own })).error;
  });

  itShows('the victim of a deadlock', { code: 'ERR_LOCK_DEADLOCK' }, async (setup) => {
    const [own, other] = [jobOf(setup), setup.job('secret-other')];
    await own.in(() => lock.acquire('secret:own', { category }));
    await other.in(() => lock.acquire(key, { category }));
    outcomeOf(other.in(() => lock.acquire('secret:own', { category })));
    await setup.clock.settle();
    return (await acquired(setup, {}, { own })).error;
  });

  itShows('one for the request alone, of a key that its trace holds', { code: 'ERR_LOCK_CONFIG' }, async (setup) => {
    const own = jobOf(setup);
    await acquired(setup, {}, { own });
    return (await acquired(setup, { reentrant: 'request' }, { own })).error;
  });

  itShows('one to read in a store without modes', { code: 'ERR_LOCK_CONFIG' }, async (setup) => {
    Object.assign(setup.store, { capabilities: { ...setup.store.capabilities, modes: false } });
    return (await acquired(setup, { mode: 'read' })).error;
  });

  itShows(
    'one on which the store fails',
    { code: 'ERR_LOCK_STORE', outcome: 'unknown', cause: down.error },
    async (setup) => {
      setup.store.next('acquire', down);
      return (await acquired(setup)).error;
    },
  );

  itShows('one to which the store does not answer', { code: 'ERR_LOCK_STORE', outcome: 'unknown' }, async (setup) => {
    setup.store.next('acquire', { kind: 'lostCall' });
    return (await acquired(setup, {}, { ms: 2_000 })).error;
  });

  itShows('one that the store had cancelled', { code: 'ERR_LOCK_STORE', outcome: 'not-applied' }, (setup) =>
    answered(setup, { status: 'cancelled' }),
  );

  itShows('one that was granted too late', { code: 'ERR_LOCK_STORE', outcome: 'unknown' }, async (setup) => {
    setup.store.next('acquire', { kind: 'lateReply', ms: 1_000 });
    return (await acquired(setup, short, { ms: 1_000 })).error;
  });

  itShows('one that could not be sent in time', { code: 'ERR_LOCK_STORE', outcome: 'not-applied' }, async (setup) => {
    setup.store.next('subscribe', { kind: 'lateReply', ms: 10 });
    const outcome = await acquired(setup, { waitMs: 10 });
    setup.clock.skip(5_000);
    await setup.clock.advance(100);
    return outcome.error;
  });

  itShows('a hold whose lease ended', { code: 'ERR_LOCK_LOST', fence: expect.any(Number) }, async (setup) => {
    const hold = await taken(setup, short);
    setup.clock.skip(1_000);
    return thrown(() => hold.assertHeld());
  });

  itShows(
    'a hold that is not renewed any more',
    { code: 'ERR_LOCK_LOST', fence: expect.any(Number) },
    async (setup) => {
      const hold = await taken(setup, { leaseMs: 1_000 });
      await setup.store.forget();
      await setup.clock.advance(1_000);
      return hold.signal.reason;
    },
  );

  itShows('a hold that was taken by force', { code: 'ERR_LOCK_LOST', fence: expect.any(Number) }, async (setup) => {
    const hold = await taken(setup);
    await jobOf(setup).in(() => getLock(key, { category }).forceRelease());
    await setup.clock.settle();
    return hold.signal.reason;
  });

  itShows(
    'the release of a hold whose key has changed hands',
    { code: 'ERR_LOCK_LOST', fence: expect.any(Number) },
    async (setup) => {
      const hold = await taken(setup);
      await setup.store.forget();
      return failed(hold.release());
    },
  );

  itShows(
    'a routine whose hold was lost',
    { code: 'ERR_LOCK_LOST', fence: expect.any(Number), value: 'secret' },
    async (setup) =>
      failed(
        jobOf(setup).in(() =>
          lock.run(
            key,
            () => {
              setup.clock.skip(1_000);
              return 'secret';
            },
            { category, ...short },
          ),
        ),
      ),
  );

  itShows('a release of what is not held', { code: 'ERR_LOCK_NOT_HELD' }, (setup) =>
    failed(jobOf(setup).in(() => lock.release(key, { category }))),
  );

  itShows('a hold that was released', { code: 'ERR_LOCK_NOT_HELD' }, async (setup) => {
    const hold = await taken(setup);
    await hold.release();
    return thrown(() => hold.assertHeld());
  });

  itShows('an acquire whose hold was given back before it was told', { code: 'ERR_LOCK_NOT_HELD' }, async (setup) => {
    const own = jobOf(setup);
    setup.locks.on('granted', () => void own.in(() => lock.release(key, { category })));
    return (await acquired(setup, {}, { own })).error;
  });

  itShows('an acquire whose scope ended before it was told', { code: 'ERR_LOCK_SCOPE' }, async (setup) => {
    const own = jobOf(setup);
    setup.locks.on('granted', () => (own.in(currentTrace) as Scope).end());
    return (await acquired(setup, {}, { own })).error;
  });
});
