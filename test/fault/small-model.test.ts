import type { MemoryLock } from '../../src/core/machine/lock-state.ts';
import { type Explored, explore as exploreModel } from './explore.ts';
import { isLong } from './seed.ts';
import {
  type Budgets,
  fairSteps,
  firstWorld,
  isDone,
  mishaps,
  type Role,
  realStore,
  type Store,
  strangers,
  type World,
} from './small-model.ts';

/** A request that holds, and calls two branches one of which calls on; a stranger wants the key as well. */
const nestedCalls: readonly Role[] = [
  { process: 'P', owner: 'T' },
  { process: 'Q', owner: 'T/1', partOf: 0, isNested: true },
  { process: 'P', owner: 'T/2', partOf: 0, isNested: true },
  { process: 'Q', owner: 'T/1/a', partOf: 1, isNested: true },
  { process: 'Q', owner: 'U' },
];

/** A branch with two children, beside another branch. */
const cousins: readonly Role[] = [
  { process: 'P', owner: 'T' },
  { process: 'Q', owner: 'T/1', partOf: 0, isNested: true },
  { process: 'P', owner: 'T/2', partOf: 0, isNested: true },
  { process: 'Q', owner: 'T/1/a', partOf: 1, isNested: true },
  { process: 'P', owner: 'T/1/b', partOf: 1, isNested: true },
];

/** A request whose branch may ask before it asks itself. */
const earlyBranch: readonly Role[] = [
  { process: 'P', owner: 'T' },
  { process: 'Q', owner: 'T/1', partOf: 0 },
  { process: 'Q', owner: 'U' },
];

/** Branches of one request that ask before it does, one of which calls on. */
const earlyBranches: readonly Role[] = [
  { process: 'P', owner: 'T' },
  { process: 'Q', owner: 'T/1', partOf: 0 },
  { process: 'P', owner: 'T/2', partOf: 0 },
  { process: 'Q', owner: 'T/1/a', partOf: 1 },
];

/** A branch whose hold passes to its parent, which then calls another. */
const inheritance: readonly Role[] = [
  { process: 'P', owner: 'T/1', passesTo: 1 },
  { process: 'P', owner: 'T' },
  { process: 'Q', owner: 'T/2', partOf: 1, isNested: true },
  { process: 'Q', owner: 'U' },
];

/** Nothing goes wrong, so that nobody has to poll. */
const calm: Budgets = { losses: 0, lapses: 0, cancels: 0, polls: false };
const polling: Budgets = { ...calm, polls: true };

function explore(cast: readonly Role[], budgets: Budgets, store: Store = realStore, until?: string): Explored {
  const model = {
    first: firstWorld(cast, budgets),
    fairSteps: (world: World) => fairSteps(world, store),
    mishaps,
    isDone,
    brokenIn: ({ broken }: World) => (broken === undefined ? [] : [broken]),
    unserved: 'stuck',
  };
  return exploreModel<World>(model, until);
}

it.each([
  // Whatever is lost or given up on the way.
  ['strangers', strangers, { ...polling, losses: 1, lapses: isLong ? 1 : 0, cancels: isLong ? 0 : 1 }],
  ['nested calls and a stranger', nestedCalls, isLong ? { ...polling, losses: 1 } : calm],
  ['cousins', cousins, calm],
  ['a branch that asks first', earlyBranch, { ...polling, losses: 1, lapses: isLong ? 1 : 0 }],
  ['a branch that gives up', earlyBranch, { ...calm, cancels: 1 }],
  ['a lease that ends', earlyBranch, { ...polling, lapses: 1 }],
  ['branches that ask first', earlyBranches, calm],
  ['a hold that passes to the parent', inheritance, calm],
])(
  'In a world of %s, no two owners or branches hold at once, fences rise, and all are served',
  (name, cast, budgets) => {
    const { worlds, broken } = explore(cast, budgets);
    process.stdout.write(`small model, ${name}: ${worlds} worlds\n`);
    expect([...broken]).toEqual([]);
    expect(worlds).toBeGreaterThan(100);
  },
);

describe('What the model finds', () => {
  /** The store with a lock that is changed before each call. */
  function changed(change: (lock: MemoryLock) => void): Store {
    return {
      acquire: (lock, ...rest) => {
        change(lock);
        return realStore.acquire(lock, ...rest);
      },
      release: (lock, ...rest) => {
        change(lock);
        return realStore.release(lock, ...rest);
      },
      transfer: (lock, ...rest) => {
        change(lock);
        return realStore.transfer(lock, ...rest);
      },
    };
  }
  const rootOf = (owner: string): string => owner.replace(/\/.*/, '');

  const mutations: readonly [string, readonly Role[], Budgets, Store, string][] = [
    [
      'a release takes whatever is held',
      strangers,
      { ...polling, cancels: 1 },
      {
        ...realStore,
        release: (lock, ...rest) => {
          for (const { request } of lock.holds.all) lock.holds.delete(request.holdId);
          return realStore.release(lock, ...rest);
        },
      },
      'two owners',
    ],
    [
      'a release does not reach the waiters, and a poll gets a reply from memory',
      strangers,
      polling,
      {
        ...realStore,
        acquire: (lock, host, request, terms) => {
          const isKnown = lock.waiter(request.holdId) !== undefined || lock.holds.get(request.holdId)?.isClaim;
          if (!isKnown) return realStore.acquire(lock, host, request, terms);
          return { status: 'queued', isNew: false, leaseRemainingMs: 0, position: 0, nowMs: host.nowMs, claims: [] };
        },
        release: (lock, host, ...rest) => ({
          ...realStore.release(lock, { ...host, send: () => {} }, ...rest),
          claims: [],
        }),
      },
      'stuck',
    ],
    [
      'each owner’s fence is counted anew',
      strangers,
      polling,
      {
        ...realStore,
        release: (lock, host, ...rest) => realStore.release(lock, { ...host, nextFence: () => 1 }, ...rest),
      },
      'the fence did not rise',
    ],
    [
      'a sibling is let in',
      nestedCalls,
      calm,
      changed(({ holds }) => {
        holds.familyOf = (owner) => holds.all.filter(({ request }) => rootOf(request.owner) === rootOf(owner)).length;
      }),
      'let in beside another branch',
    ],
    [
      'a parent is let in beside its child',
      earlyBranch,
      calm,
      changed(({ holds }) => {
        const { admits } = holds;
        holds.admits = (request) =>
          admits.call(holds, request) || holds.all.every((hold) => rootOf(hold.request.owner) === request.owner);
      }),
      'let in beside another branch',
    ],
    [
      'a nested waiter stands behind a stranger',
      nestedCalls,
      calm,
      changed(({ holds }) => {
        holds.depthOver = () => 0;
      }),
      'stuck',
    ],
    [
      'a nested waiter that came first stays behind a stranger when its ancestor is granted',
      earlyBranch,
      calm,
      changed((lock) => {
        lock.handOffWithin = () => [];
      }),
      'stuck',
    ],
    [
      'a child of a sibling stands before a child of the holder',
      cousins,
      calm,
      changed(({ holds }) => {
        const { depthOver } = holds;
        holds.depthOver = (owner) => Math.min(1, depthOver.call(holds, owner));
      }),
      'stuck',
    ],
    [
      'two branches have one id',
      nestedCalls.map((role) => (role.owner === 'T/2' ? { ...role, owner: 'T/1', branch: 'T/2' } : role)),
      calm,
      realStore,
      'two owners',
    ],
    [
      'a branch is let in for a parent whose lease has ended',
      earlyBranch,
      { ...polling, lapses: 1 },
      changed(({ holds }) => {
        const { admits } = holds;
        holds.admits = (request) => request.owner.includes('/') || admits.call(holds, request);
      }),
      'let in beside another branch',
    ],
    [
      'an inherited hold stays with the branch that had it',
      inheritance,
      calm,
      {
        ...realStore,
        transfer: (lock, host, from, to, terms) => {
          const reply = realStore.transfer(lock, host, from, to, terms);
          const hold = lock.holds.get(to.holdId);
          if (hold !== undefined && lock.holds.delete(to.holdId))
            lock.holds.add({ ...hold, request: { ...to, owner: from.owner } });
          return reply;
        },
      },
      'stuck',
    ],
  ];

  it.each(mutations)('The model finds it if %s', (_, cast, budgets, store, what) => {
    expect([...explore(cast, budgets, store, what).broken]).toContain(what);
  });
});
