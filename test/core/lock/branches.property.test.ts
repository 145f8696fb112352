import fc from 'fast-check';
import { QuorumStore } from '../../../src/stores/quorum/quorum-store.ts';
import { isLong, printSeed, seed } from '../../fault/seed.ts';
import { Player, Reference, type Step, tree } from '../../support/nesting/trees.ts';
import { FakeStore } from '../../support/stores/fake-store.ts';
import { coreTests, type Setup } from '../../support/stores/set-up.ts';

// It plays many trees.
jest.setTimeout(600_000);
printSeed('branches');

/** The nodes of each quorum, by its first one. */
const quorums = new WeakMap<FakeStore, FakeStore[]>();
let isQuorum = false;

const setUp = coreTests((store, clock) => {
  if (!isQuorum) return store;
  const stores = quorums.get(store) ?? [store, new FakeStore(clock), new FakeStore(clock)];
  quorums.set(store, stores);
  return new QuorumStore({ stores }, clock);
});

/** Plays some requests at once, and returns what was seen. */
async function playAll(setups: readonly [Setup, ...Setup[]], trees: readonly Step[]): Promise<Reference> {
  const { clock } = setups[0];
  const reference = new Reference();
  const player = new Player(reference, () => new Promise((resolve) => void clock.after(3, resolve)));
  let left = trees.length;
  const errors: unknown[] = [];
  for (const [n, each] of trees.entries()) {
    const { locks } = setups[n % setups.length] as Setup;
    player
      .request(each, { locks })
      .catch((error: unknown) => errors.push(error))
      .finally(() => (left -= 1));
  }
  for (let round = 0; round < 400 && left > 0; round++) await clock.advance(250);
  expect({ left, errors }).toEqual({ left: 0, errors: [] });
  return reference;
}

/** One key, since a quorum finds no deadlocks; and no jobs, which can't enter there what a branch has left. */
function simple(step: Step): Step {
  return { ...step, kind: step.kind === 'job' ? 'run' : step.kind, keys: ['a'], calls: step.calls.map(simple) };
}

it.each<[string, (step: Step) => Step, number]>([
  ['in memory', (step) => step, 500],
  ['on a quorum', simple, 100],
])(
  'In any tree of calls whose locks are %s, nested calls enter, branches exclude each other, and nothing stays held',
  async (name, stepOf, numRuns) => {
    isQuorum = stepOf === simple;
    let entered = 0;
    let trees = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(tree, { minLength: 1, maxLength: 3 }), async (requests) => {
        const options = { waitMs: Number.POSITIVE_INFINITY, maxHoldMs: 2 ** 31 - 1 };
        const setup = setUp(options);
        const setups: [Setup, ...Setup[]] = isQuorum ? [setup, setup.sibling(options)] : [setup];
        const reference = await playAll(setups, requests.map(stepOf));
        entered += reference.entered;
        trees += requests.length;
        expect(reference.violations).toEqual([]);
        await setup.clock.settle();
        expect(await setup.store.remains()).toEqual([]);
      }),
      { seed, numRuns: isLong ? 100 * numRuns : numRuns },
    );
    process.stdout.write(`branches ${name}: ${trees} trees, ${entered} times inside\n`);
  },
);
