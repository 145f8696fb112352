import { OpenReleases } from '../../../src/core/stores/redis/open-releases.ts';

describe('the open releases of a process', () => {
  /** Answers what is asked before. */
  const open = (releases: OpenReleases, id: string, holdId: string, nowMs = 0): boolean => {
    const hasOther = releases.hasOther({ id, holdId }, nowMs);
    releases.open({ id, holdId }, nowMs, nowMs + 10);
    return hasOther;
  };

  it('tell of another hold on the same lock, until that is closed', () => {
    const releases = new OpenReleases();
    expect(open(releases, 'order:42', 'first')).toBe(false);
    expect(open(releases, 'order:42', 'second')).toBe(true);
    releases.close({ id: 'order:42', holdId: 'first' });
    expect(open(releases, 'order:42', 'second')).toBe(false);
    expect(open(releases, 'order:42', 'third')).toBe(true);
    releases.close({ id: 'order:42', holdId: 'second' });
    expect(open(releases, 'order:42', 'third')).toBe(false);
  });

  it('know a hold once, however often it is opened, and close it once for all', () => {
    const releases = new OpenReleases();
    for (let tries = 0; tries < 3; tries++) expect(open(releases, 'order:42', 'hold')).toBe(false);
    releases.close({ id: 'order:42', holdId: 'hold' });
    expect(open(releases, 'order:42', 'next')).toBe(false);
    releases.close({ id: 'order:42', holdId: 'unknown' });
    releases.close({ id: 'order:43', holdId: 'next' });
    expect(open(releases, 'order:42', 'another')).toBe(true);
  });

  it('forget what is over, counted from when it was opened last', () => {
    const releases = new OpenReleases();
    open(releases, 'order:42', 'hold', 0);
    open(releases, 'order:42', 'hold', 5);
    expect(open(releases, 'order:42', 'next', 14)).toBe(true);
    expect(open(releases, 'order:42', 'last', 15)).toBe(true);
    releases.close({ id: 'order:42', holdId: 'next' });
    expect(open(releases, 'order:42', 'last', 24)).toBe(false);
    expect(open(releases, 'order:42', 'after', 34)).toBe(false);
  });

  it('are told apart by lock and hold where there are many more than chains, whatever goes first', () => {
    const releases = new OpenReleases();
    const ids = Array.from({ length: 20_000 }, (_, i) => `order:${i}`);
    for (const id of ids) expect(open(releases, id, 'hold')).toBe(false);
    const closed = ids.filter((_, i) => i % 3 === 0);
    for (const id of closed) releases.close({ id, holdId: 'hold' });
    const isClosed = new Set(closed);
    for (const id of ids) {
      expect(open(releases, id, 'next')).toBe(!isClosed.has(id));
      releases.close({ id, holdId: 'next' });
    }
    // All that is left is over: it goes, from wherever it stands in its chain.
    for (const id of ids) expect(open(releases, id, 'last', 10)).toBe(false);
  });

  it('are none before the first, and after the last was closed or is over', () => {
    const releases = new OpenReleases();
    expect(releases.isEmpty).toBe(true);
    for (const holdId of ['one', 'one', 'two', 'three']) open(releases, 'order:42', holdId);
    for (const holdId of ['one', 'one', 'two']) releases.close({ id: 'order:42', holdId });
    expect(releases.isEmpty).toBe(false);
    open(releases, 'order:42', 'four', 10);
    releases.close({ id: 'order:42', holdId: 'four' });
    expect(releases.isEmpty).toBe(true);
  });
});
