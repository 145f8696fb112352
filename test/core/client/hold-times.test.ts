import { HoldTimes } from '../../../src/core/client/hold-times.ts';

describe('HoldTimes', () => {
  const held = (id: string, category?: string) => ({ id, category });

  it('A key’s own mean is used before that of its category, and that before the mean of all', () => {
    const times = new HoldTimes();
    expect(times.typicalMs(held('a', 'order'))).toBeUndefined();
    times.record(held('x'), 900);
    expect(times.typicalMs(held('a', 'order'))).toBe(900);
    times.record(held('b', 'order'), 50);
    expect(times.typicalMs(held('a', 'order'))).toBe(50);
    times.record(held('a', 'order'), 10);
    expect(times.typicalMs(held('a', 'order'))).toBe(10);
  });

  it('A mean follows the newest holds', () => {
    const times = new HoldTimes();
    times.record(held('a'), 1_000);
    for (let n = 0; n < 30; n++) times.record(held('a'), 20);
    expect(times.typicalMs(held('a'))).toBeCloseTo(21.2, 0);
  });

  it('The 256 keys that were used last are known, and not many more', () => {
    const times = new HoldTimes();
    const others = (count: number) => {
      for (let n = 0; n < count; n++) times.record(held(`other-${n}`), 500);
    };
    times.record(held('a', 'first'), 1);
    times.record(held('b', 'first'), 3);
    others(255);
    times.record(held('a', 'first'), 1);
    others(255);
    expect(times.typicalMs(held('a', 'first'))).toBe(1);
    // That of its category: 1, 3 and 1.
    expect(times.typicalMs(held('b', 'first'))).toBeCloseTo(1.32, 5);
  });
});
