import { isLong } from './seed.ts';
import { fairSteps, firstWorld, isDone, mishaps, realStore, type Store, type World } from './small-model.ts';

interface Result {
  readonly worlds: number;
  readonly broken: Set<string>;
}

/** Goes through every world that there is; from each, without anything going wrong any more, everybody must be served. */
function explore(budgets: Pick<World, 'losses' | 'lapses' | 'cancels'>, store: Store = realStore): Result {
  const broken = new Set<string>();
  const numbers = new Map<string, number>();
  /** By world: those from which a fair step leads to it. */
  const before: number[][] = [];
  const done: number[] = [];
  const open: World[] = [];
  const numberOf = (world: World): number => {
    const name = JSON.stringify(world);
    let number = numbers.get(name);
    if (number === undefined) {
      number = before.push([]) - 1;
      numbers.set(name, number);
      open.push(world);
    }
    return number;
  };
  numberOf(firstWorld(budgets));
  for (let world = open.pop(); world !== undefined; world = open.pop()) {
    const number = numberOf(world);
    if (world.broken !== undefined) broken.add(world.broken);
    if (isDone(world)) done.push(number);
    for (const next of fairSteps(world, store)) before[numberOf(next)]?.push(number);
    for (const next of mishaps(world)) numberOf(next);
  }
  const served = new Set<number>();
  for (let number = done.pop(); number !== undefined; number = done.pop()) {
    if (served.has(number)) continue;
    served.add(number);
    done.push(...(before[number] ?? []));
  }
  if (served.size < before.length) broken.add('a live waiter was not served');
  return { worlds: before.length, broken };
}

it('Two owners, three acquires, and whatever is lost or given up on the way: one owner, rising fences, and all are served', () => {
  const { worlds, broken } = explore({ losses: 1, lapses: isLong ? 1 : 0, cancels: isLong ? 0 : 1 });
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
    expect([...explore({ losses: 0, lapses: 0, cancels: 1 }, { ...realStore, release }).broken]).toContain(
      'two owners',
    );
  });

  it('The model finds a waiter that is never served if a release does not reach the waiters and a poll is answered from memory', () => {
    const acquire: Store['acquire'] = (lock, host, request, terms) => {
      const { nowMs } = host;
      const isKnown = lock.waiter(request.holdId) !== undefined || lock.holds.get(request.holdId)?.isClaim;
      if (isKnown) return { status: 'queued', isNew: false, leaseRemainingMs: 0, position: 0, nowMs, claims: [] };
      return realStore.acquire(lock, host, request, terms);
    };
    const release: Store['release'] = (lock, host, request, terms) => ({
      ...realStore.release(lock, { ...host, tell: () => {} }, request, terms),
      claims: [],
    });
    const { broken } = explore({ losses: 0, lapses: 0, cancels: 0 }, { acquire, release });
    expect([...broken]).toContain('a live waiter was not served');
  });

  it('The model finds a fence that does not rise if each owner’s is counted anew', () => {
    const release: Store['release'] = (lock, host, request, terms) =>
      realStore.release(lock, { ...host, nextFence: () => 1 }, request, terms);
    const { broken } = explore({ losses: 0, lapses: 0, cancels: 0 }, { ...realStore, release });
    expect([...broken]).toContain('the fence did not rise');
  });
});
