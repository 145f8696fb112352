import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { createLocks, type Locks } from '../../src/core/index.ts';
import { Player, Reference, type Step, tree } from '../support/nesting/trees.ts';
import { until } from '../support/until.ts';
import { backends } from './backends.ts';
import { openStore } from './processes/open-store.ts';
import { isLong, printSeed, seed, seeded } from './seed.ts';

printSeed('trees');

/** So many groups of requests play at once, each on keys of its own. */
const lines = 20;
const perLine = isLong ? 170 : 2;

describe.each(['redis', 'postgres'])('Requests of two processes whose locks are on %s', (name) => {
  it('In any trees of calls, nested calls enter, branches exclude each other, and nothing stays held', async () => {
    const backend = await backends[name]!(seeded(seed));
    const stores = [openStore(backend.direct), openStore(backend.direct)];
    await Promise.all(stores.map(({ ready }) => ready));
    const all = stores.map(({ store }) => createLocks({ store, waitMs: 60_000, pollMs: 500 }));
    try {
      const requests = fc.array(tree, { minLength: 3, maxLength: 3 });
      const groups = fc.sample(requests, { seed, numRuns: lines * perLine });
      const played = { store: name, trees: 3 * groups.length, inside: 0 };
      const line = async (): Promise<void> => {
        for (let group = groups.pop(); group !== undefined; group = groups.pop()) {
          const reference = await play(group, `${groups.length}:`, all);
          expect(reference.violations).toEqual([]);
          played.inside += reference.entered;
        }
      };
      await Promise.all(Array.from({ length: lines }, line));
      process.stdout.write(`trees: ${JSON.stringify(played)}\n`);
      expect(all.map((locks) => locks.stats())).toMatchObject(all.map(() => ({ holds: 0, waiters: 0 })));
      // A call may end after its request: what it acquired is released in the background then.
      await until(async () => (await (all[0] as Locks).list()).locks.length === 0);
    } finally {
      await Promise.all(all.map((locks) => locks.close()));
      await Promise.all(stores.map((store) => store.close()));
      await backend.stop();
    }
  });
});

/** Plays some requests at once, each in one of the processes, and returns what was seen. */
async function play(trees: readonly Step[], prefix: string, all: readonly Locks[]): Promise<Reference> {
  const reference = new Reference();
  const player = new Player(reference, () => sleep(1), prefix);
  await Promise.all(trees.map((each, n) => player.request(each, { locks: all[n % all.length] as Locks })));
  return reference;
}
