import { randomBytes } from 'node:crypto';

// Calls of a store as they reach it, without the package around it. Each load prepares keys of its own in a store, and returns
// what runs it once. That resolves with how often it did what the load's name says.

const width = 64;
const turns = 8;
const hourMs = 3_600_000;

const newId = () => randomBytes(16).toString('hex');

/** The names of four processes. As long as those of the package. */
export const processes = Array.from({ length: 4 }, (_, i) => `api-${i}:4242~${randomBytes(16).toString('base64url')}`);

const hold = (id, place = 0, more = {}) => ({
  id,
  holdId: newId(),
  owner: newId(),
  process: processes[place % processes.length],
  claimMs: 3000,
  mode: 'write',
  priority: 0,
  ...more,
});

/** The calls of a store, each of which must return the status. */
function callsOf(store) {
  const expecting = async (status, call) => {
    const reply = await call;
    if (reply.status !== status) throw new Error(`Expected the store to return '${status}', got '${reply.status}'`);
    return reply;
  };
  const terms = { leaseMs: 10_000, queue: true, maxWaiters: 10_000, livenessMs: 5000 };
  const acquire = (request, status = 'granted', more = {}) =>
    expecting(status, store.acquire(request, { ...terms, ...more }));
  const release = (request) => expecting('released', store.release(request, { tombstoneMs: 10_000 }));
  return {
    acquire,
    release,
    acquireAndRelease: (request) => acquire(request).then(() => release(request)),
    renew: (request, fence) => expecting('renewed', store.renew(request, { fence, leaseMs: 10_000 })),
  };
}

/** So many loops at a time, each of which does the same again and again: `step` has the number of its loop. */
async function inLoops(step, loops = width) {
  const loop = async (_, i) => {
    for (let turn = 0; turn < turns; turn += 1) await step(i);
  };
  await Promise.all(Array.from({ length: loops }, loop));
  return loops * turns;
}

/** Hands keys from waiter to waiter: a holder releases its key, and another owner queues for it. */
const handingOn = (waiters, processCount) => async (store) => {
  const { acquire, release } = callsOf(store);
  const lines = Array.from({ length: width }, () => []);
  const counts = lines.map(() => 0);
  const queue = async (key, status = 'queued') => {
    // One process after the other for each key, so that a waiter is of another process than the holder before it.
    const request = hold(`hot:${waiters}:${key}`, counts[key] % processCount);
    counts[key] += 1;
    lines[key].push(request);
    await acquire(request, status);
  };
  for (let i = 0; i <= waiters; i += 1) {
    await Promise.all(Array.from(lines.keys(), (key) => queue(key, i === 0 ? 'granted' : 'queued')));
  }
  return () =>
    inLoops(async (key) => {
      await release(lines[key].shift());
      await queue(key);
    });
};

/** One more hold in turn on each of many keys, beside so many others. `of` makes a hold from those that are there. */
const joining = (name, others, of) => async (store) => {
  const { acquire, acquireAndRelease } = callsOf(store);
  const first = Array.from({ length: width }, (_, key) => of(`${name}:${others}:${key}`));
  const fill = async (holder) => {
    await acquire(holder, 'granted', { leaseMs: hourMs });
    for (let i = 1; i < others; i += 1) await acquire(of(holder.id, holder), 'granted', { leaseMs: hourMs });
  };
  await Promise.all(first.map(fill));
  return () => inLoops((key) => acquireAndRelease(of(first[key].id, first[key])));
};

/** What is called while a key is held. */
const beside = (name, call) => async (store) => {
  const calls = callsOf(store);
  const holder = hold(name);
  const { grant } = await calls.acquire(holder, 'granted', { leaseMs: hourMs });
  const waiter = hold(name);
  return () => inLoops(() => call(calls, { holder, grant, waiter }));
};

const reader = (id) => hold(id, 1, { mode: 'read' });

export const storeCalls = {
  'free keys: acquire and release, 64 at once': async (store) => {
    const { acquireAndRelease } = callsOf(store);
    return () => inLoops((i) => acquireAndRelease(hold(`free:${i}`)));
  },
  'a free key: acquire and release, one call after the other': async (store) => {
    const { acquireAndRelease } = callsOf(store);
    return () => inLoops(() => acquireAndRelease(hold('free')), 1);
  },
  'new keys: acquire': async (store) => {
    const { acquire } = callsOf(store);
    return () => inLoops(() => acquire(hold(`new:${newId()}`)));
  },
  renew: beside('renew', ({ renew }, { holder, grant }) => renew(holder, grant.fence)),
  'a try that is refused': beside('try', ({ acquire }) => acquire(hold('try'), 'refused', { queue: false })),
  'a poll of a waiter': beside('poll', ({ acquire }, { waiter }) => acquire(waiter, 'queued')),
  'a second hold of one owner: acquire and release': joining('own', 1, (id, { owner } = {}) =>
    hold(id, 1, owner && { owner }),
  ),
  'one waiter of the other of 2 processes: release and queue': handingOn(1, 2),
  '32 waiters of 4 processes: release and queue': handingOn(32, 4),
  '300 waiters of one process: release and queue': handingOn(300, 1),
  'a reader beside 1: acquire and release': joining('read', 1, reader),
  'a reader beside 64: acquire and release': joining('read', 64, reader),
  'a reader beside 1,000: acquire and release': joining('read', 1000, reader),
};
