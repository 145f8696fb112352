import fc from 'fast-check';
import { isLong, printSeed, seed } from '../../fault/seed.ts';
import { Player, Reference, type Step, tree } from '../../support/nesting/trees.ts';
import { coreTests, type Setup } from '../../support/stores/set-up.ts';

// It plays many trees.
jest.setTimeout(600_000);
printSeed('branches');

const setUp = coreTests();

/** Plays some requests at once, and returns what was seen. */
async function playAll({ clock, locks }: Setup, trees: readonly Step[]): Promise<Reference> {
  const reference = new Reference();
  const player = new Player(reference, () => new Promise((resolve) => void clock.after(3, resolve)));
  let left = trees.length;
  const errors: unknown[] = [];
  for (const each of trees) {
    player
      .request(each, { locks })
      .catch((error: unknown) => errors.push(error))
      .finally(() => (left -= 1));
  }
  for (let round = 0; round < 400 && left > 0; round++) await clock.advance(250);
  expect({ left, errors }).toEqual({ left: 0, errors: [] });
  return reference;
}

it('In any tree of calls, nested calls enter, branches exclude each other, and nothing stays held', async () => {
  let entered = 0;
  let trees = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(tree, { minLength: 1, maxLength: 3 }), async (requests) => {
      const setup = setUp({ waitMs: Number.POSITIVE_INFINITY, maxHoldMs: 2 ** 31 - 1 });
      const reference = await playAll(setup, requests);
      entered += reference.entered;
      trees += requests.length;
      expect(reference.violations).toEqual([]);
      await setup.clock.settle();
      expect(await setup.store.remains()).toEqual([]);
    }),
    { seed, numRuns: isLong ? 50_000 : 500 },
  );
  process.stdout.write(`branches: ${trees} trees, ${entered} times inside\n`);
});
