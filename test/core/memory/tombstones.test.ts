import { MemoryTombstones } from '../../../src/core/memory/tombstones.ts';

describe('The releases that MemoryStore remembers', () => {
  it('A release is reported until its time has ended, and no longer', () => {
    const tombstones = new MemoryTombstones();
    tombstones.add('long', 'cancelled', 5_000, 0);
    tombstones.add('short', 'expired', 1_000, 0);
    expect([tombstones.get('long', 999), tombstones.get('short', 999)]).toEqual(['cancelled', 'expired']);
    expect([tombstones.get('long', 1_000), tombstones.get('short', 1_000)]).toEqual(['cancelled', undefined]);
    expect(tombstones.get('another', 0)).toBeUndefined();
  });

  it('Remembered releases are at most twice those that still count, also alongside one that lasts for a day', () => {
    const tombstones = new MemoryTombstones();
    tombstones.add('cron', 'cancelled', 86_400_000, 0);
    for (let nowMs = 0; nowMs < 1_000_000; nowMs += 10) {
      tombstones.add(`hold-${nowMs}`, 'cancelled', nowMs + 30_000, nowMs);
    }
    expect(tombstones.size).toBeLessThanOrEqual(2 * 3_001);
    expect(tombstones.get('cron', 1_000_000)).toBe('cancelled');
    expect(tombstones.get('hold-999000', 1_000_000)).toBe('cancelled');
  });

  it('Remembered releases are dropped some time after there were many', () => {
    const tombstones = new MemoryTombstones();
    for (let hold = 0; hold < 10_000; hold += 1) tombstones.add(`hold-${hold}`, 'cancelled', 30_000, 0);
    expect(tombstones.size).toBe(10_000);
    expect(tombstones.get('another', 60_000)).toBeUndefined();
    expect(tombstones.size).toBe(0);
  });
});
