import fc from 'fast-check';
import { type BatchHold, lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

// It plays many schedules.
jest.setTimeout(60_000);

const setUp = coreTests();
const names = ['a', 'b', 'c', 'd', 'e', 'f'];

/** One scope's work: a batch in its own order, held for a while; or a single key, for batches to meet. */
const visit = fc.record({
  process: fc.nat(2),
  startMs: fc.nat(300),
  heldMs: fc.nat(200),
  keys: fc.shuffledSubarray(names, { minLength: 1 }),
  single: fc.boolean(),
});
type Visit = typeof visit extends fc.Arbitrary<infer T> ? T : never;

/** Who holds which key, by what the visitors were told. */
class History {
  readonly #holders = new Map<string, number>();
  readonly #fences = new Map<string, number>();
  finished = 0;

  enter(visitor: number, fences: ReadonlyMap<string, number>): void {
    for (const [key, fence] of fences) {
      expect([key, this.#holders.get(key)]).toEqual([key, undefined]);
      expect(fence).toBeGreaterThan(this.#fences.get(key) ?? 0);
      this.#holders.set(key, visitor);
      this.#fences.set(key, fence);
    }
  }

  leave(keys: Iterable<string>): void {
    for (const key of keys) this.#holders.delete(key);
    this.finished += 1;
  }
}

async function come(setup: Setup, history: History, visitor: number, { startMs, heldMs, ...visit }: Visit) {
  const pause = (ms: number) => new Promise<void>((resolve) => setup.clock.after(ms, resolve));
  const options = { waitMs: Number.POSITIVE_INFINITY };
  await pause(startMs);
  await setup.job().in(async () => {
    const keys = visit.single ? visit.keys.slice(0, 1) : visit.keys;
    const routine = async ({ holds }: Pick<BatchHold, 'holds'>) => {
      expect([...holds.keys()]).toEqual(keys);
      history.enter(visitor, new Map([...holds].map(([key, { fence }]) => [key, fence])));
      await pause(heldMs);
      history.leave(keys);
    };
    if (!visit.single) return lock.runAll(keys, routine, options);
    return lock.run(keys[0]!, (hold) => routine({ holds: new Map([[hold.key, hold]]) }), options);
  });
}

describe('Batches of overlapping keys, in any order, in several processes', () => {
  it('All batches get their keys, and never one of them while another holds it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(visit, { minLength: 2, maxLength: 12 }), async (visits) => {
        const first = setUp();
        const processes = [first, first.sibling(), first.sibling()];
        const history = new History();
        const outcomes = visits.map((one, index) => outcomeOf(come(processes[one.process]!, history, index, one)));
        // Each of them holds for 200 ms at most: a circle would outlast all of them.
        await first.clock.advance(300 + 200 * visits.length + 10_000);
        expect(outcomes).toEqual(visits.map(() => expect.objectContaining({ state: 'fulfilled' })));
        expect(history.finished).toBe(visits.length);
        expect(await first.store.remains()).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });
});
