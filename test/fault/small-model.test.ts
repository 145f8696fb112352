import { type Explored, explore as exploreModel } from './explore.ts';
import { isLong } from './seed.ts';
import {
  type Budgets,
  fairSteps,
  firstWorld,
  isDone,
  mishaps,
  realStore,
  type Store,
  strangers,
  type World,
} from './small-model.ts';

function explore(budgets: Budgets, store: Store = realStore): Explored {
  return exploreModel<World>({
    first: firstWorld(strangers, budgets),
    fairSteps: (world) => fairSteps(world, store),
    mishaps,
    isDone,
    brokenIn: ({ broken }) => (broken === undefined ? [] : [broken]),
    unserved: 'a live waiter was not served',
  });
}

it('Two owners, three acquires, and whatever is lost or given up on the way: one owner, rising fences, and all are served', () => {
  const { worlds, broken } = explore({ losses: 1, lapses: isLong ? 1 : 0, cancels: isLong ? 0 : 1, polls: true });
  process.stdout.write(`small model: ${worlds} worlds\n`);
  expect([...broken]).toEqual([]);
  expect(worlds).toBeGreaterThan(1_000);
});

describe('What the model finds', () => {
  it('The model finds two owners if a release takes whatever is held', () => {
    const release: Store['release'] = (lock, host, request, terms) => {
      for (const { request: taken } of lock.holds.all) lock.holds.delete(taken.holdId);
      return realStore.release(lock, host, request, terms);
    };
    expect([...explore({ losses: 0, lapses: 0, cancels: 1, polls: true }, { ...realStore, release }).broken]).toContain(
      'two owners',
    );
  });

  it('The model finds a waiter that is never served if a release does not reach the waiters and a poll gets a reply from memory', () => {
    const acquire: Store['acquire'] = (lock, host, request, terms) => {
      const { nowMs } = host;
      const isKnown = lock.waiter(request.holdId) !== undefined || lock.holds.get(request.holdId)?.isClaim;
      if (isKnown) return { status: 'queued', isNew: false, leaseRemainingMs: 0, position: 0, nowMs, claims: [] };
      return realStore.acquire(lock, host, request, terms);
    };
    const release: Store['release'] = (lock, host, request, terms) => ({
      ...realStore.release(lock, { ...host, send: () => {} }, request, terms),
      claims: [],
    });
    const { broken } = explore({ losses: 0, lapses: 0, cancels: 0, polls: true }, { ...realStore, acquire, release });
    expect([...broken]).toContain('a live waiter was not served');
  });

  it('The model finds a fence that does not rise if each owner’s is counted anew', () => {
    const release: Store['release'] = (lock, host, request, terms) =>
      realStore.release(lock, { ...host, nextFence: () => 1 }, request, terms);
    const { broken } = explore({ losses: 0, lapses: 0, cancels: 0, polls: true }, { ...realStore, release });
    expect([...broken]).toContain('the fence did not rise');
  });
});
