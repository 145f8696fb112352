import { processState } from '../../../src/core/base/process-state.ts';
import { getLock, LockConfigError, type LockEvents, LockLostError, lock } from '../../../src/core/index.ts';
import { lockEventNames } from '../../../src/core/model/events.ts';
import { pathOf } from '../../support/path-of.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('The events of a lock', () => {
  it('The events report a hold from its grant to its release, and not its re-entries', async () => {
    const { job, clock, events } = setUp();
    const [granted, renewed, released, waiting] = [
      events('granted'),
      events('renewed'),
      events('released'),
      events('waiting'),
    ];
    const { in: inJob } = job('owner');
    const hold = await inJob(() => lock.acquire('key', { leaseMs: 3_000 }));
    const inner = await inJob(() => lock.acquire('key'));
    await inner.release();
    const holdId = granted[0]?.holdId;
    expect(holdId).toEqual(expect.any(String));
    const event = { key: 'key', category: undefined, mode: 'write', traceId: 'owner', branch: '', holdId };
    expect(granted).toEqual([{ ...event, fence: hold.fence, waitedMs: 0 }]);
    await hold.extend(10_000);
    expect(renewed).toContainEqual({ ...event, remainingMs: 9_898 });
    expect(released).toEqual([]);
    await clock.advance(70);
    await hold.release();
    expect(released).toEqual([{ ...event, heldMs: 70 }]);
    expect(waiting).toEqual([]);
  });

  it('The events report how long an acquire waited', async () => {
    const { job, clock, events } = setUp();
    const [granted, waiting] = [events('granted'), events('waiting')];
    const first = await job().in(() => lock.acquire('key'));
    const second = outcomeOf(job('owner').in(() => lock.acquire('key')));
    await clock.advance(123);
    const parts = { key: 'key', category: undefined, mode: 'write', traceId: 'owner', branch: '' };
    expect(waiting).toEqual([{ ...parts, holdId: expect.any(String) }]);
    await first.release();
    await clock.settle();
    expect(granted[1]).toMatchObject({ ...waiting[0], waitedMs: 123, fence: second.value?.fence });
  });

  it('The events report a wait and a hold without steps of the wall clock meanwhile', async () => {
    const { job, clock, events } = setUp();
    const [granted, released, timeout] = [events('granted'), events('released'), events('timeout')];
    const aborted = events('aborted');
    const controller = new AbortController();
    const first = await job().in(() => lock.acquire('key'));
    const second = outcomeOf(job().in(() => lock.acquire('key')));
    const late = outcomeOf(job().in(() => lock.acquire('key', { waitMs: 500 })));
    outcomeOf(job().in(() => lock.acquire('key', { signal: controller.signal })));
    await clock.advance(100);
    clock.jumpWall(86_400_000);
    await clock.advance(100);
    controller.abort();
    await first.release();
    await clock.advance(400);
    expect(released).toMatchObject([{ heldMs: 200 }]);
    expect(granted).toMatchObject([{ waitedMs: 0 }, { waitedMs: 200 }]);
    expect(aborted).toMatchObject([{ waitedMs: 200 }]);
    expect(timeout).toMatchObject([{ waitedMs: 500 }]);
    expect(late.error).toMatchObject({ waitedMs: 500 });
    await second.value?.release();
  });

  it('The events report a grant before they report that it was one alongside others of its owner', async () => {
    const { job, locks } = setUp();
    const order: string[] = [];
    for (const name of ['granted', 'entered'] as const) locks.on(name, () => void order.push(name));
    await job('owner').in(() => lock.acquire('key'));
    await job('owner').in(() => lock.acquire('key'));
    expect(order).toEqual(['granted', 'granted', 'entered']);
  });

  it('The events are emitted in the order in which things happen', async () => {
    const { job, clock, locks } = setUp();
    const order: string[] = [];
    for (const name of ['granted', 'waiting', 'released', 'lost', 'timeout'] as const)
      locks.on(name, (event) => void order.push(`${pathOf(event)} ${name}`));
    const first = await job('a').in(() => lock.acquire('key'));
    outcomeOf(job('b').in(() => lock.acquire('key', { leaseMs: 1_000, renew: false })));
    outcomeOf(job('c').in(() => lock.acquire('key', { waitMs: 100 })));
    await clock.advance(100);
    await first.release();
    await clock.advance(1_000);
    expect(order).toEqual(['a granted', 'b waiting', 'c waiting', 'c timeout', 'a released', 'b granted', 'b lost']);
  });

  it('The events report a loss even if only the release finds that the key had changed hands', async () => {
    const { job, clock, events } = setUp();
    const [lost, released] = [events('lost'), events('released')];
    const owner = job('owner');
    const hold = await owner.in(() => lock.acquire('key', { leaseMs: 1_000 }));
    // A process that stood still: its work goes on, and ends, before any timer runs.
    clock.skip(1_100);
    const next = await job('next').in(() => lock.acquire('key'));
    await owner.end();
    await clock.settle();
    await expect(hold.release()).rejects.toBe(lost[0]?.error);
    expect(lost).toEqual([
      {
        key: 'key',
        category: undefined,
        mode: 'write',
        traceId: 'owner',
        branch: '',
        holdId: expect.any(String),
        heldMs: 1100,
        error: expect.any(LockLostError),
      },
    ]);
    expect(released).toEqual([]);
    expect(next.isHeld()).toBe(true);
  });

  it('The events report no loss if the key changed hands after a release without a reply in time', async () => {
    const { job, clock, store, events } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 2_500, renew: false }));
    store.next('release', { kind: 'lostCall' }, { kind: 'lateCall', ms: 800 });
    const released = outcomeOf(hold.release());
    await clock.advance(2_510);
    expect(released.error).toMatchObject({ code: 'ERR_LOCK_STORE' });
    const next = await job('next').in(() => lock.acquire('key'));
    await clock.advance(1_000);
    expect([store.count('release'), next.isHeld(), lost]).toEqual([2, true, []]);
  });

  it.each(['grant', 'error', '__proto__', undefined, 5])('An unknown event, %p, is refused', (name) => {
    const { locks } = setUp();
    expect(() => locks.on(name as 'granted', () => {})).toThrow(LockConfigError);
    expect(() => locks.on(name as 'granted', () => {})).toThrow(/^Expected the event to be 'granted' or .*, got `/);
  });

  it.each([undefined, null, {}])('The events refuse %p as their listener', (listener) => {
    const { locks } = setUp();
    expect(() => locks.on('granted', listener as unknown as () => void)).toThrow(LockConfigError);
    expect(() => locks.on('granted', listener as unknown as () => void)).toThrow(/the listener to be a function, got /);
  });

  it('The events of one Locks do not reach the listeners of another', async () => {
    const [a, b] = [setUp(), setUp()];
    const heard = b.events('granted');
    await a.job().in(() => lock.acquire('key'));
    expect(heard).toEqual([]);
  });

  it('The events reach a listener that was added twice until both are removed; a removal counts once', async () => {
    const { job, locks } = setUp();
    const listener = jest.fn();
    const off = locks.on('granted', listener);
    const offToo = locks.on('granted', listener);
    off();
    off();
    await job().in(() => lock.acquire('a'));
    expect(listener).toHaveBeenCalledTimes(1);
    offToo();
    await job().in(() => lock.acquire('b'));
    expect(listener).toHaveBeenCalledTimes(1);
  });

  it('A warning of the stream is a warning of the process, once, and no event', async () => {
    const { job, store } = setUp();
    processState().warned.clear();
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    await job().in(() => lock.acquire('key'));
    const warning = { kind: 'warning', code: 'LOCK_EVICTION', message: 'It evicts' } as const;
    store.broadcast(warning);
    store.broadcast(warning);
    expect(warned.mock.calls).toEqual([['It evicts', expect.objectContaining({ code: 'LOCK_EVICTION' })]]);
    warned.mockRestore();
    processState().warned.clear();
  });

  it('A fault of the stream is reported to listeners', async () => {
    const { job, store, events } = setUp();
    const errors = events('storeError');
    await job().in(() => lock.acquire('key'));
    const error = new Error('half open');
    store.broadcast({ kind: 'fault', error });
    expect(errors).toEqual([{ operation: 'subscribe', error }]);
  });
});

describe('A listener that fails', () => {
  /** What happens in the test. Listeners of all events fail. */
  const played: readonly (keyof LockEvents)[] = [
    'aborted',
    'forced',
    'granted',
    'lost',
    'released',
    'renewed',
    'storeError',
    'timeout',
    'waiting',
    'warning',
  ];
  const failing: readonly (readonly [string, () => void])[] = [
    [
      'throws',
      () => {
        throw new Error('listener');
      },
    ],
    [
      'throws nothing',
      () => {
        throw undefined;
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('listener');
      },
    ],
    [
      'answers a thenable that rejects',
      // biome-ignore lint/suspicious/noThenProperty: another library's promise
      () => ({ then: (_: unknown, no: (error: Error) => void) => no(new Error('listener')) }) as unknown as undefined,
    ],
  ];

  it.each(failing)(
    '%s: every lock works on, the other listeners are called, and the process is warned',
    async (_, listener) => {
      const { job, clock, locks, store } = setUp();
      const warn = jest.spyOn(process, 'emitWarning').mockImplementation();
      const heard = new Set<string>();
      for (const name of lockEventNames) {
        locks.on(name, listener);
        locks.on(name, () => void heard.add(name));
      }
      const own = job();
      const first = await own.in(() => lock.acquire('key', { leaseMs: 1_000 }));
      const waiter = outcomeOf(job().in(() => lock.acquire('key')));
      const late = outcomeOf(job().in(() => lock.acquire('key', { waitMs: 50 })));
      const controller = new AbortController();
      const gone = outcomeOf(job().in(() => lock.acquire('key', { signal: controller.signal })));
      await clock.advance(100);
      controller.abort();
      store.next('renew', { kind: 'rejected', error: new Error('down') });
      await clock.advance(1_000);
      first.waitUntil(Promise.reject(new Error('work')));
      await clock.settle();
      await first.release();
      await clock.settle();
      expect([waiter.state, late.state, gone.state]).toEqual(['fulfilled', 'rejected', 'rejected']);
      expect(await job().in(() => getLock('key').forceRelease())).toBe(true);
      await clock.settle();
      expect(waiter.value?.isHeld()).toBe(false);
      expect([...heard].sort()).toEqual(played);
      expect(warn).toHaveBeenCalledWith(
        expect.stringContaining('A listener of lock events threw'),
        expect.objectContaining({ code: 'LOCK_LISTENER' }),
      );
      warn.mockRestore();
    },
  );

  it.each([
    ['a value', 5],
    ['a promise that is kept', Promise.resolve('value')],
    // biome-ignore lint/suspicious/noThenProperty: another library's promise
    ['a thenable that is kept', { then: (yes: (value: number) => void) => yes(5) }],
  ])('A listener does not fail by returning %s', async (_, answer) => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const { job, clock, locks } = setUp();
    locks.on('granted', () => answer as unknown as undefined);
    await job().in(() => lock.acquire('key'));
    await clock.settle();
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  it.each([
    ['cannot be made a string', Object.create(null)],
    ['is nothing', undefined],
    ['is a string', 'words'],
    ['has a message that is none', { message: Symbol('message') }],
  ])('A failing listener breaks nothing, even if what it throws %s', async (_, thrown) => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const { job, locks } = setUp();
    locks.on('granted', () => {
      throw thrown;
    });
    locks.on('released', () => Promise.reject(thrown));
    const hold = await job().in(() => lock.acquire('key'));
    await hold.release();
    expect(warn).toHaveBeenCalledTimes(2);
    warn.mockRestore();
  });
});
