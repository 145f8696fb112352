import fc from 'fast-check';
import { type Placed, SortedList } from '../../../src/core/machine/sorted-list.ts';

const step = fc.record({ place: fc.integer({ min: -3, max: 3 }), isRemoval: fc.boolean(), which: fc.nat(10_000) });

describe('A sorted list', () => {
  it('A sorted list keeps items by place, equal ones in the order of arrival, and knows the rank of each', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 3_000, size: 'max' }), (steps) => {
        const list = new SortedList<number>();
        let expected: Placed<number>[] = [];
        for (const [item, { place, isRemoval, which }] of steps.entries()) {
          if (isRemoval && expected.length > 0) {
            const [removed] = expected.splice(which % expected.length, 1);
            list.delete(removed as Placed<number>);
          } else {
            const placed = list.add(item, place);
            const at = expected.findIndex((other) => other.place > place);
            expected = at < 0 ? [...expected, placed] : [...expected.slice(0, at), placed, ...expected.slice(at)];
          }
        }
        expect([...list]).toEqual(expected.map(({ item }) => item));
        expect(expected.map((placed) => list.rankOf(placed))).toEqual(expected.map((_, rank) => rank));
        expect(expected.map((_, rank) => list.at(rank))).toEqual(expected.map(({ item }) => item));
        expect([list.first, list.last]).toEqual([expected[0]?.item, expected.at(-1)?.item]);
      }),
      { numRuns: 30 },
    );
  });
});
